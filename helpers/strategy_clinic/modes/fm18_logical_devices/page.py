# %% [markdown]
# # FM18. A tensor is split for more logical devices than a replica has
#
# This page is for model parallelism on TPUs: a model is too large for one core, so each replica gets several cores, its *logical
# devices*, and tensors are split over them. A split that does not fit the number of cores raises while the step is traced.
#
# ```text
# ValueError: The product of `partition_dimensions` should be the same as the number of logical devices (=2).
# Received `partition_dimensions`=[1, 2, 4, 1],and their product is 8.
# ```
#
# *Loud, while the step is traced. Only a TPU has logical devices, and none is needed to see it. The document is the reference of
# `tf.distribute.TPUStrategy` (003).*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm18",
    slug="logical_devices",
    title="A tensor is split for more logical devices than a replica has",
    sees="a ValueError about `partition_dimensions` while a TPU's step is traced",
    fix="make the product of `partition_dimensions` that of `computation_shape`, and divide evenly",
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
        Claim("003-C25", "with SPMD every input must be split or replicated", "false"),
    ),
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
# ## What goes wrong
#
# You copy an example from the reference: images are split by `[1, 2, 4, 1]`, under a strategy whose replicas have two cores. You
# believe that the strategy and the split belong together, because they stand in the same example.

# %%
import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures, tpu


def spread(setup, block, spmd=True):
    """A strategy whose replicas own `block` cores each; other strategies than a TPU's have no such blocks."""
    if setup.strategy == "tpu_traced":
        return tpu.strategy("v2-8", block, spmd)
    if setup.strategy != "tpu":
        return build_strategy(setup)
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    tf.config.experimental_connect_to_cluster(resolver)
    topology = tf.tpu.experimental.initialize_tpu_system(resolver)
    placed = tf.tpu.experimental.DeviceAssignment.build(topology, list(block), num_replicas=1)
    return tf.distribute.TPUStrategy(
        resolver, experimental_device_assignment=placed, experimental_spmd_xla_partitioning=spmd
    )


def annotate(strategy, how, tensor, *arguments):
    """Calls `strategy.experimental_…`, where the strategy has such a method."""
    method = getattr(strategy, f"experimental_{how}", None)
    return method(tensor, *arguments) if method else tensor


def image():
    return np.random.default_rng(0).normal(size=(1, 4, 8, 1)).astype("float32")


def edges(data):
    return tf.nn.conv2d(data, tf.constant([1.0, -1.0], shape=(1, 2, 1, 1)), 1, "SAME")


def find_edges(strategy):
    """Every replica splits the image two ways by four and looks for edges."""

    def step(data):
        parts = annotate(strategy, "split_to_logical_devices", data, [1, 2, 4, 1])
        return edges(parts)

    @tf.function
    def find(data):
        return strategy.run(step, args=(data,))

    found = strategy.experimental_local_results(find(tf.constant(image())))
    return Proof("every replica finds the edges of the whole", found, [edges(image())] * len(found))


# %%
@experiment
def broken(setup):
    strategy = spread(setup, (1, 1, 1, 2))  # guilty: two logical devices, for a split that needs 8
    return find_edges(strategy)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# The *computation shape* is the block of the TPU's mesh that one replica gets: chips in x, y and z, and cores of a chip. Its
# product is the number of logical devices of the replica. `partition_dimensions` is about a *tensor*: it has one number per
# axis, and says into how many parts the axis is cut. Its length must be the tensor's rank. Each size must be divisible. Its
# product must be the number of logical devices.
#
# TensorFlow derives neither list from the other. SPMD, which runs one program on all cores of a replica, changes none of these
# rules.
#
# The picture splits a tensor for replicas with two logical devices. See
# [`experimental_split_to_logical_devices`](https://www.tensorflow.org/api_docs/python/tf/distribute/TPUStrategy#experimental_split_to_logical_devices).


# %%
def annotated(strategy, how, data, *arguments):
    """What each replica has of a tensor after the call."""

    def step():
        return annotate(strategy, how, tf.constant(data), *arguments)

    @tf.function
    def train_step():
        return strategy.run(step)

    return strategy.experimental_local_results(train_step())


def traces(how, *arguments, spmd=False):
    strategy = tpu.strategy("v2-8", (1, 1, 1, 2), spmd)
    try:
        annotated(strategy, how, np.ones((3, 4), "float32"), *arguments)
    except ValueError:
        return False
    return True


ASSIGN = "assign_to_logical_device"
SPLIT = "split_to_logical_devices"
COPY = "replicate_to_logical_devices"
ASKED = {
    "assign to 0": (ASSIGN, 0),
    "assign to 1": (ASSIGN, 1),
    "assign to 2": (ASSIGN, 2),
    "assign to -1": (ASSIGN, -1),
    "split 3 x 4 by [1, 2]": (SPLIT, [1, 2]),
    "split by [2]: rank": (SPLIT, [2]),
    "split by [1, 4]: product": (SPLIT, [1, 4]),
    "split by [2, 1]: 3 is odd": (SPLIT, [2, 1]),
    "replicate": (COPY,),
}
FOUND = {row: [traces(*call, spmd=spmd) for spmd in (False, True)] for row, call in ASKED.items()}
SPLITS = {row: found for row, found in FOUND.items() if row.startswith("split")}
figures.grid(SPLITS, ["plain", "SPMD"], "traces", "ValueError", "Two logical devices per replica")

# %% [markdown]
# ## The fix
#
# Choose the split that the tensor needs, and a block with as many cores as its product: all 2 x 2 x 1 x 2 cores of a TPU v2-8
# are eight. A strategy without a device assignment gives each replica one core. Before:
#
# ```python
# import tensorflow as tf
#
# resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect("local")
# strategy = tf.distribute.TPUStrategy(resolver)
#
#
# @tf.function
# def train_step(image):
#     def step(image):
#         return strategy.experimental_split_to_logical_devices(image, [1, 2, 4, 1])
#
#     return strategy.run(step, args=(image,))
#
#
# train_step(tf.ones((1, 4, 8, 1)))  # ValueError: should be the same as the number of logical devices (=1)
# ```
#
# After, if one core is enough: a product of one.
#
# ```python
# import tensorflow as tf
#
# resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect("local")
# strategy = tf.distribute.TPUStrategy(resolver)
#
#
# @tf.function
# def train_step(image):
#     def step(image):
#         return strategy.experimental_split_to_logical_devices(image, [1, 1, 1, 1])
#
#     return strategy.run(step, args=(image,))
#
#
# print(strategy.experimental_local_results(train_step(tf.ones((1, 4, 8, 1))))[0].shape)  # (1, 4, 8, 1)
# ```
#
# To keep the split, give the strategy a `DeviceAssignment` with eight cores for a replica, as `spread` does above. The replicas
# become fewer as they become larger: here one is left, so the global batch is its batch. The proof compares the result of
# the split image with that of the whole.


# %%
@experiment
def fixed(setup):
    strategy = spread(setup, (2, 2, 1, 2))  # repair: eight logical devices
    return find_edges(strategy)


session.proves(fixed)

# %%
traced = session.setup.but(strategy="tpu_traced", devices=8)
one = session.setup.but(strategy="default", devices=1)
SETUPS = [
    traced,
    traced.but(keras=session.setup.other_keras),
    one,
    one.but(strategy="mirrored", devices=2),
]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch between `tpu_traced` and `mirrored`: only a TPU's strategy fails. Other strategies have no logical devices. They keep the
# tensor whole, and find the same edges.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The reference of `tf.distribute.TPUStrategy` (003), on its example with eight logical devices and on SPMD:
#
# > computation_shape=[1, 2, 2, 2],
#
# > When running in this mode, every input tensor must either be partitioned (via
# > strategy.experimental_split_to_logical_devices) or fully replicated (via strategy.experimental_replicate_to_logical_devices)
# > to all logical devices.
#
# That shape gives eight logical devices on a mesh two chips deep, and does not fit a TPU v2-8. With SPMD, a tensor without
# annotation is accepted while tracing. The other rules hold, among them that SPMD refuses `assign` for every core. A size that is
# unknown while tracing is not checked.
#
# All of this was seen while tracing. Whether SPMD saves memory and time, only a compiler can tell.


# %% tags=["claims"]
def fits(mesh, block):
    """How many logical devices a replica has, or 0 if the block does not fit the mesh."""
    places = [[list(place) for place in np.ndindex(*mesh)]]
    described = tf.tpu.experimental.Topology(mesh_shape=mesh, device_coordinates=places)
    try:
        placed = tf.tpu.experimental.DeviceAssignment.build(described, block, num_replicas=1)
    except ValueError:
        return 0
    return placed.num_cores_per_replica


def kept(how, *arguments):
    """Whether an annotated tensor has the value that it had."""
    strategy, data = tpu.strategy("v2-8", (1, 1, 1, 2), True), np.ones((3, 4), "float32") * 5
    return all(np.array_equal(each, data) for each in annotated(strategy, how, data, *arguments))


def cores_of_a_variable(core=None):
    """The cores on which the copies of a variable lie."""
    strategy = tpu.strategy("v2-8", (1, 1, 1, 2))
    with strategy.scope():
        if core is None:
            variable = tf.Variable(1.0)
        else:
            with strategy.extended.experimental_logical_device(core):
                variable = tf.Variable(1.0)
    return {part.device for part in strategy.experimental_local_results(variable)}


def accepts_what_is_not_annotated():
    strategy = tpu.strategy("v2-8", (1, 1, 1, 2), spmd=True)

    def step(data):
        return data + 1

    @tf.function
    def train_step(data):
        return strategy.run(step, args=(data,))

    return len(strategy.experimental_local_results(train_step(tf.ones(3)))) == 4


DEFAULT = cores_of_a_variable()
session.judges(
    {
        "003-C19": [FOUND["assign to 1"][0]] + [not FOUND[f"assign to {i}"][0] for i in (2, -1)],
        "003-C20": [not FOUND[f"assign to {i}"][1] for i in (0, 1)],
        "003-C21": [FOUND["split 3 x 4 by [1, 2]"][0]]
        + [not any(FOUND[row]) for row in FOUND if ": " in row],
        "003-C22": [fits((1, 2, 2, 2), [1, 2, 2, 2]) == 8, fits((2, 2, 1, 2), [1, 2, 2, 2]) == 8],
        "003-C23": [kept(SPLIT, [1, 2]), kept(COPY)],
        "003-C24": [cores_of_a_variable(0) == DEFAULT, not DEFAULT & cores_of_a_variable(1)],
        "003-C25": [not accepts_what_is_not_annotated()],
    },
    evidence="traced",
)

# %% [markdown]
# ## Exercise
#
# Each replica owns four cores, and a table of 4 rows and 6 columns shall be split over all of them. Somebody has cut the columns
# in two, "one half for each chip". Change the split so that every core gets a part, and the sum is that of the whole table.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = spread(setup, (2, 1, 1, 2))
    table = np.arange(24, dtype="float32").reshape(4, 6)

    def add_up(data):
        parts = annotate(strategy, "split_to_logical_devices", data, [1, 2])
        return tf.reduce_sum(parts)

    @tf.function
    def step(data):
        return strategy.run(add_up, args=(data,))

    got = strategy.experimental_local_results(step(tf.constant(table)))
    return Proof("every replica has the sum of the whole table", got, [table.sum()] * len(got))


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = spread(setup, (2, 1, 1, 2))
    table = np.arange(24, dtype="float32").reshape(4, 6)

    def add_up(data):
        parts = annotate(strategy, "split_to_logical_devices", data, [2, 2])
        return tf.reduce_sum(parts)

    @tf.function
    def step(data):
        return strategy.run(add_up, args=(data,))

    got = strategy.experimental_local_results(step(tf.constant(table)))
    return Proof("every replica has the sum of the whole table", got, [table.sum()] * len(got))


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm16 tpu_eager_run](fm16_tpu_eager_run.ipynb): what else a TPU refuses before anything runs.
# - [fm26 replica_count_changed](fm26_replica_count_changed.ipynb): what changes with fewer replicas than before.
