# %% [markdown]
# # FM18. `The product of partition_dimensions should be the same as the number of logical devices`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `` ValueError: The product of `partition_dimensions` should be the same as the number of logical devices (=2). Received `partition_dimensions`=[1, 2, 4, 1],and their product is 8. `` | `experimental_split_to_logical_devices` | 2, 3 |
# | `` ValueError: Length of `partition_dimensions` must equal to the rank of `tensor.shape` (4). … `` | `experimental_split_to_logical_devices` | 2, 3 |
# | `` ValueError: Tensor shape at `partition_dimensions[0]` must be divisible by corresponding value specified by `partition_dimensions` (2). Received: 1. `` | `experimental_split_to_logical_devices` | 2, 3 |
# | `ValueError: computation footprint [1 2 2 2] does not fit in TPU topology shape [2 2 1 2]` | `DeviceAssignment.build` | 2, 3 |
# | `ValueError: requested 5 replicas but only 4 replicas with shape [1 1 1 2] … fit in a TPU mesh of shape …` | `DeviceAssignment.build` | 2, 3 |
# | `AttributeError: 'MirroredStrategy' object has no attribute 'experimental_split_to_logical_devices'` | a strategy that is not for TPUs | 2, 3 |
#
# A model that is too large for one TPU core is split over several cores, the *logical devices* of a replica. The split must have
# as many parts as the replica has cores.
#
# *Raises on Keras 2 and 3, under `TPUStrategy` only, while the step is traced.*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm18",
    slug="logical_devices",
    title="`The product of partition_dimensions should be the same as the number of logical devices`",
    sees="a ValueError about `partition_dimensions` while a TPU's step is traced",
    fix="make the product of `computation_shape` that of `partition_dimensions`, and divide evenly",
    document="003",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "ValueError",
            r"product of `partition_dimensions` should be the same as the number of logical devices",
            strategies=("tpu_traced", "tpu"),
        ),
    ),
    claims=(
        Claim("003-C19", "a logical device that does not exist is a ValueError", "true"),
        Claim("003-C20", "with SPMD, to assign to a logical device is a ValueError", "true"),
        Claim("003-C21", "rank, divisibility and product of a split are checked", "true"),
        Claim("003-C22", "computation shape [1, 2, 2, 2] gives 8 logical devices", "half"),
        Claim("003-C23", "a split or replicated tensor keeps its value", "true"),
        Claim("003-C24", "the default is logical device 0", "true"),
        Claim(
            "003-C25", "with SPMD, an input that is not annotated is refused while tracing", "false"
        ),
        Claim("003-C36", "the addition of its example is on logical device 0", "true"),
        Claim("003-C37", "its example with four replicas of two logical devices runs", "true"),
        Claim("003-C38", "its example that splits images and replicates labels runs", "false"),
    ),
    prints="sum of the image: 32.0",
    exercise_prints="sum of the table: 24.0",
    unavailable={
        "default": "only TPUStrategy has logical devices",
        "one_device": "only TPUStrategy has logical devices",
        "mirrored": "only TPUStrategy has logical devices",
        "central_storage": "only TPUStrategy has logical devices",
        "multi_worker": "only TPUStrategy has logical devices",
        "parameter_server": "only TPUStrategy has logical devices",
    },
)

# %% tags=["parameters"]
strategy = "tpu_traced"
devices = 8
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm18", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# An image of 4 x 8 pixels is split into 2 x 4 parts, as in the reference of `TPUStrategy`. Each replica has two cores. Without a
# TPU, this page describes a v2-8 to TensorFlow, and TensorFlow's own `TPUStrategy` traces the step. In a file of your own both
# programs then raise the error of [FM17](fm17_tpu_not_initialised.ipynb).

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Give each replica as many cores as the split has parts. `print(topology.mesh_shape)` shows what the TPU has: `[2 2 1 2]` on a
# v2-8 or v3-8. On a v5e-8 use `[2, 4, 1, 1]`, because TensorFlow sees one core in a chip from v4 on.
#
# Then there is one replica, and its batch is the global batch. If one core is enough for the model, delete the split and the
# `DeviceAssignment`.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# The sum is computed here on CPU devices, without the split. The program has not been run on a TPU.
#
# ## Why
#
# `computation_shape` is about the *TPU*: the block of cores that one replica gets, as chips in x, y and z and cores in a chip.
# Its product is the number of logical devices. Without a `DeviceAssignment` a replica has one.
#
# `partition_dimensions` is about a *tensor*: into how many parts each axis is cut. The product must be the number of logical
# devices, and each number must divide the size of its axis. A size that is unknown while tracing is not checked.
#
# `experimental_spmd_xla_partitioning` changes none of these rules. See
# [`experimental_split_to_logical_devices`](https://www.tensorflow.org/api_docs/python/tf/distribute/TPUStrategy#experimental_split_to_logical_devices).

# %% tags=["figure"]
# Splits of the image of the program, under a strategy with two logical devices in a replica.
import tensorflow as tf

from strategy_clinic import figures, tpu

REASONS = {"product": "product is not 2", "Length": "too short", "divisible": "not divisible"}


def refusal(method, *arguments, spmd=False, shape=(1, 4, 8, 1)):
    """What is wrong with an annotation of a tensor of this shape, or "" if it is accepted while tracing."""
    tpu_strategy = tpu.strategy("v2-8", (1, 1, 1, 2), spmd)

    @tf.function
    def train_step(data):
        return tpu_strategy.run(
            lambda part: getattr(tpu_strategy, method)(part, *arguments), (data,)
        )

    try:
        train_step(tf.ones(shape))
    except ValueError as error:
        return next((REASONS[part] for part in REASONS if part in str(error)), str(error))
    return ""


SPLIT = "experimental_split_to_logical_devices"
SPLITS = [[1, 2, 1, 1], [1, 1, 2, 1], [1, 2, 4, 1], [2, 1], [2, 1, 1, 1]]
FOUND = {str(split): [refusal(SPLIT, split) or "accepted"] for split in SPLITS}
TITLE = "An image of 1 x 4 x 8 x 1 on two cores: which split is accepted?"
figures.words(FOUND, ["two cores"], REASONS.values(), TITLE)

# %% [markdown]
# ## Try other setups
#
# Other strategies have no logical devices.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs with the two versions of Keras, and under a strategy that is not for TPUs:

# %% tags=["table"]
traced = session.setup.but(strategy="tpu_traced", devices=8)
mirrored = traced.but(strategy="mirrored", devices=2)
session.table([traced, traced.but(keras=session.setup.other_keras), mirrored])

# %% [markdown]
# ## Exercise
#
# Each replica has four cores. The program cuts the columns of a table in two, "one half for each chip". Change the split, so
# that each core gets a part. It should print `24.0`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## What documents say
#
# The reference of `TPUStrategy` uses `computation_shape=[1, 2, 2, 2]`, which needs a mesh that is two chips deep, and does not
# fit a v2-8. For SPMD it demands that "every input tensor must either be partitioned … or fully replicated". Tracing accepts
# an input without annotation; what the compiler needs is not tested here.
#
# Its example for `experimental_replicate_to_logical_devices` raises. It splits `inputs`, which is a pair, where it means
# `images`, and its split into eight parts does not fit two logical devices.

# %% tags=["claims"]
# The rules of the reference, while tracing, and blocks of cores on the meshes of several TPUs.
import numpy as np

ASSIGN, COPY = "experimental_assign_to_logical_device", "experimental_replicate_to_logical_devices"


def logical_devices(mesh, block):
    """How many logical devices a replica has, or 0 if the block does not fit the mesh."""
    places = [[list(place) for place in np.ndindex(*mesh)]]
    topology = tf.tpu.experimental.Topology(mesh_shape=mesh, device_coordinates=places)
    try:
        return tf.tpu.experimental.DeviceAssignment.build(topology, block).num_cores_per_replica
    except ValueError:
        return 0


def results_of(step):
    """What each replica returns from a step with SPMD."""
    tpu_strategy = tpu.strategy("v2-8", (1, 1, 1, 2), spmd=True)
    traced_step = tf.function(tpu_strategy.run)
    return tpu_strategy.experimental_local_results(traced_step(lambda: step(tpu_strategy)))


def keeps_value(method, *arguments):
    data = np.arange(12, dtype="float32").reshape(3, 4)
    parts = results_of(lambda here: getattr(here, method)(tf.constant(data), *arguments))
    return all(np.array_equal(part, data) for part in parts)


def cores_of_a_variable(core=None):
    """The cores on which the copies of a variable are."""
    tpu_strategy = tpu.strategy("v2-8", (1, 1, 1, 2))
    with tpu_strategy.scope():
        if core is None:
            variable = tf.Variable(1.0)
        else:
            with tpu_strategy.extended.experimental_logical_device(core):
                variable = tf.Variable(1.0)
    return {part.device for part in tpu_strategy.experimental_local_results(variable)}


def addition(core):
    """The device in the annotation of the sum in the reference's example, on a replica with two logical devices."""
    strategy = tpu.strategy("v2-8", (1, 1, 1, 2), replicas=1)

    @tf.function()
    def step_fn(inputs):
        features, _ = inputs
        output = tf.add(features, features)
        return strategy.experimental_assign_to_logical_device(output, core)

    batches = strategy.distribute_datasets_from_function(
        lambda ctx: tf.data.Dataset.from_tensors((tf.ones((1, 5)), tf.ones((1, 1))))
    )
    strategy.run(step_fn, args=(next(iter(batches)),))
    _, program = tpu.WATCHED[-1]
    (node,) = [node for node in program.graph.as_graph_def().node if node.op == "XlaSharding"]
    return node.attr["_XlaSharding"].s[-1]  # the list of devices is what comes last


def four_replicas():
    """The sums of the example with four replicas, each with two logical devices."""
    strategy = tpu.strategy("v2-8", (1, 1, 1, 2), replicas=4)
    rows = tf.data.Dataset.from_tensor_slices(tf.ones((8, 3))).batch(8)
    iterator = iter(strategy.experimental_distribute_dataset(rows))

    @tf.function()
    def step_fn(inputs):
        output = tf.add(inputs, inputs)
        return strategy.experimental_assign_to_logical_device(output, 0)

    results = strategy.run(step_fn, args=(next(iterator),))
    return [part.numpy().tolist() for part in strategy.experimental_local_results(results)]


def images_and_labels_run(pick, split):
    """Whether the example with images and labels runs if this part of its inputs is split in this way."""
    strategy = tpu.strategy("v2-8", (1, 1, 1, 2), replicas=4)
    pair = (tf.ones((4, 4, 8, 1)), tf.ones((4, 1)))
    iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensors(pair)))

    @tf.function()
    def step_fn(inputs):
        images, labels = inputs
        images = strategy.experimental_split_to_logical_devices(pick(inputs), split)
        output = tf.reduce_mean(pick(inputs), axis=(1, 2))
        labels = strategy.experimental_replicate_to_logical_devices(labels)
        output = strategy.experimental_replicate_to_logical_devices(output)
        return tf.reduce_mean(tf.square(labels - output))

    try:
        strategy.run(step_fn, args=(next(iterator),))
    except (AttributeError, ValueError):
        return False
    return True


assert images_and_labels_run(lambda inputs: inputs[0], [1, 2, 1, 1])
assert logical_devices((2, 4, 1, 1), [2, 4, 1, 1]) == 8  # a v5e-8
DEFAULT = cores_of_a_variable()
session.judges(
    {
        "003-C19": [not refusal(ASSIGN, 1), *(bool(refusal(ASSIGN, core)) for core in (2, -1))],
        "003-C20": [bool(refusal(ASSIGN, core, spmd=True)) for core in (0, 1)],
        "003-C21": [bool(refusal(SPLIT, split)) == (split in SPLITS[2:]) for split in SPLITS],
        "003-C22": [logical_devices(m, [1, 2, 2, 2]) == 8 for m in ((1, 2, 2, 2), (2, 2, 1, 2))],
        "003-C23": [keeps_value(SPLIT, [1, 2]), keeps_value(COPY)],
        "003-C24": [cores_of_a_variable(0) == DEFAULT, not DEFAULT & cores_of_a_variable(1)],
        "003-C36": [addition(core) == core for core in (0, 1)],
        "003-C37": [four_replicas() == [[[2.0] * 3] * 2] * 4],
        "003-C38": [
            images_and_labels_run(lambda inputs: inputs, [1, 2, 4, 1]),  # as printed
            images_and_labels_run(lambda inputs: inputs[0], [1, 2, 4, 1]),  # with `images`
        ],
        "003-C25": [len(results_of(lambda here: tf.ones(3) + 1)) != 4],
    },
    evidence="traced",
)

# %% [markdown]
# ## Read next
#
# - [FM17](fm17_tpu_not_initialised.ipynb): no TPU is found.
# - [FM16](fm16_tpu_eager_run.ipynb): `TPUStrategy` refuses a step outside of a `tf.function`.
# - [FM26](fm26_replica_count_changed.ipynb): what changes with fewer replicas than before.
