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
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm18",
    slug="logical_devices",
    title="`The product of partition_dimensions should be the same as the number of logical devices`",
    sees="a ValueError about `partition_dimensions` while a TPU's step is traced",
    fix="let the product of `partition_dimensions` be that of `computation_shape`; each number divides its axis",
    document="003",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "ValueError",
            r"product of `partition_dimensions` should be the same as the number of logical devices",
            strategies=("tpu_traced", "tpu"),
        ),
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

# %% tags=["tests"]
# Tests the block of cores for a v5e-8.
import numpy as np


def logical_devices(mesh, block):
    """How many logical devices a replica has, or 0 if the block does not fit the mesh."""
    places = [[list(place) for place in np.ndindex(*mesh)]]
    topology = tf.tpu.experimental.Topology(mesh_shape=mesh, device_coordinates=places)
    try:
        return tf.tpu.experimental.DeviceAssignment.build(topology, block).num_cores_per_replica
    except ValueError:
        return 0


assert logical_devices((2, 4, 1, 1), [2, 4, 1, 1]) == 8  # a v5e-8

# %% [markdown]
# ## Read next
#
# - [FM17](fm17_tpu_not_initialised.ipynb): no TPU is found.
# - [FM16](fm16_tpu_eager_run.ipynb): `TPUStrategy` refuses a step outside of a `tf.function`.
# - [FM26](fm26_replica_count_changed.ipynb): what changes with fewer replicas than before.
# - What the reference of `TPUStrategy` says: [document 003](documents/003_tpu_strategy.ipynb).
