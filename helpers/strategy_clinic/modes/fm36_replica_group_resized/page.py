# %% [markdown]
# # FM36. `joining a group with size`: a second `MirroredStrategy` with another number of devices
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `InternalError: … Collective ops is aborted by: Device … is joining a group with size2, but that group has size 4` | the first step under the second strategy | 2, 3 |
# | `InternalError: … The error could be from a previous operation. Restart your program to reset.` | every later step, also under the first strategy | 2, 3 |
#
# The devices of a `MirroredStrategy` form a group with a number and a size, which TensorFlow keeps until the process ends. The
# second strategy joins group 1, which has another size.
#
# *Raises on Keras 2 and 3, under `MirroredStrategy` of two sizes in one process, unless one of them has one device. `fit` can
# also end without training and without an error.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm36",
    slug="replica_group_resized",
    title="`joining a group with size`: a second `MirroredStrategy` with another number of devices",
    sees="collective ops are aborted after the number of devices was changed in a running notebook",
    fix="restart the process, or use `cross_device_ops=tf.distribute.ReductionToOneDevice()`",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "InternalError",
            r"joining a group with size ?\d+, but that group has size \d+",
            strategies=("mirrored",),
            devices=(4, 8),
        ),
    ),
    prints="mean on all devices: 1.0\nmean on two devices: 1.0",
    exercise_prints="weight after one step: 0.8\nweight after one step: 0.8\nweight after one step: 0.8",
    unavailable={
        "default": "the default strategy has no list of devices",
        "multi_worker": "a second strategy would need the devices of both processes",
        "parameter_server": "a replica there has no all-reduce",
        "tpu_traced": "`MirroredStrategy` does not run on TPU cores",
        "tpu": "`MirroredStrategy` does not run on TPU cores",
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 4
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm36", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# It computes a mean on four devices and then on two of them, as a benchmark or a notebook does.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Restart the process, or the kernel of the notebook, before you change the number of devices.
#
# If one process must hold strategies of several sizes, as in tests, give every strategy but those of one size a reduction that
# forms no group. `ReductionToOneDevice()` and `HierarchicalCopyAllReduce()` both work. `ReductionToOneDevice` is slower on GPUs:
# use it in tests, not in training. The times of a benchmark then say nothing about training.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# Devices that take part in an all-reduce form a *group*. A group has a number and a size. TensorFlow's runtime keeps both until
# the process ends, also when the strategy object is gone.
#
# Every `MirroredStrategy` counts its groups from 1. The second strategy therefore joins group 1, which exists with another size.
# The runtime refuses, and it aborts all later collective operations of the process. So a strategy that worked before raises as
# well.
#
# `fit` can end without this error and without training: in 2 of 80 runs of `fit` on four devices after two, the aborted operation
# cancelled the dataset first, and Keras took that for the end of the data. Compare the weights, not only the exit status.
#
# A strategy of the same size fits into the existing group. One device forms no group. TensorFlow's own tests [raise the first
# number](https://github.com/tensorflow/tensorflow/blob/v2.20.0/tensorflow/python/distribute/strategy_combinations.py) for each
# strategy that they create.
#
# On four parts of one GPU (an H200), the program above fails in the same way. The table was made on CPU devices.
#
# The table creates strategies of three sizes one after the other in one process, with three kinds of reduction.
#
# A new process starts without groups, so a file can be loaded on any number of devices: see
# [FM26](fm26_replica_count_changed.ipynb).

# %% tags=["figure"]
# One process for each row: which of its strategies can compute a mean?
from strategy_clinic import figures

SIZES = (2, 2, 4, 2, 1)
PROGRAM = """\
import tensorflow as tf

tf.config.set_visible_devices([], "GPU")
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
REDUCTION = {reduction}
words = []
for size in {sizes}:
    names = ["CPU:0", "CPU:1", "CPU:2", "CPU:3"][:size]
    mirrored = tf.distribute.MirroredStrategy(names, REDUCTION if size == 4 else None)
    try:
        mirrored.run(lambda: tf.distribute.get_replica_context().all_reduce("MEAN", tf.ones([])))
        words.append("works")
    except tf.errors.InternalError:
        words.append("raises")
print(*words)
"""
WAYS = {
    "the default": "None",
    "HierarchicalCopyAllReduce": "tf.distribute.HierarchicalCopyAllReduce()",
    "ReductionToOneDevice": "tf.distribute.ReductionToOneDevice()",
}
texts = {name: PROGRAM.format(reduction=way, sizes=SIZES) for name, way in WAYS.items()}
four = session.setup.but(strategy="mirrored", devices=4)
printed = session.prints(texts, [four])
FOUND = {name: row[0].split() for name, row in printed.items()}
COLUMNS = [f"x{size}" for size in SIZES]
figures.words(FOUND, COLUMNS, "raises", "Five strategies, one after the other: which work?")

# %% [markdown]
# ## Try other setups
#
# With two devices both strategies have the same size, and with one device there is no group: both work. With eight devices the
# program raises again.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on four, two and one devices, under another strategy, and with the other version of Keras:

# %% tags=["table"]
SETUPS = [four, four.but(devices=2), four.but(devices=1), four.but(strategy="central_storage")]
session.table([*SETUPS, four.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# This benchmark takes the same training step on one, two and four devices. It raises at four. Let it finish in one process. It
# should print `0.8` three times.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM26](fm26_replica_count_changed.ipynb): another number of devices after a restart, which raises nothing.
# - [FM03](fm03_scope_mismatch.ipynb): two strategies in one program, mixed in one model.
# - [FM32](fm32_optimizer_built_in_replica.ipynb): another failure of the collective all-reduce.
# - [FM41](fm41_multi_worker_start.ipynb): groups of several processes, and a worker that waits for them.
