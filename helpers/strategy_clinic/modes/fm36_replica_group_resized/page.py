# %% [markdown]
# # FM36. A second MirroredStrategy of another size breaks all of them
#
# You train on two devices. In the same notebook you create a new strategy with four, and its first step raises. You go back to
# two, which worked before, and that raises too.
#
# ```text
# InternalError: The error could be from a previous operation. Restart your program to reset. [Op:CollectiveReduceV2] name:
# ```
#
# *Loud, with `MirroredStrategy` of two different sizes in one process, unless one of them is 1. The reference of
# `tf.distribute.TPUStrategy` describes one strategy and does not mention a second.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm36",
    slug="replica_group_resized",
    title="A second MirroredStrategy of another size breaks all of them",
    sees="collective ops are aborted after the number of devices was changed in a running notebook",
    fix="restart the process, or build with `cross_device_ops=tf.distribute.ReductionToOneDevice()`",
    document="003",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "InternalError",
            r"joining a group with size ?\d+, but that group has size \d+",
            strategies=("mirrored",),
            devices=(2, 4, 8),
        ),
    ),
    claims=(),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm36", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You compare training on two and on four devices, and create a strategy for each. You believe that a strategy is an ordinary
# Python object, which is gone as soon as you drop it.
#
# The failure lasts until the process ends. So each experiment on this page runs in a process of its own: `apart` starts it, and
# this kernel stays usable.

# %%
import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures, runner, runtime, workers

STEPS = 3


def context():
    return tf.distribute.get_replica_context()


def train(strategy):
    """Some steps; each adds up the gradients of all replicas. Returns the copies of the weights."""
    with strategy.scope():
        weights = tf.Variable(tf.zeros(3))

    def gradient(direction):
        mine = (weights.read_value() - direction) / context().num_replicas_in_sync
        return context().all_reduce("SUM", mine)

    run = runner(strategy)  # strategy.run, inside a tf.function where a TPU needs it
    for step in range(STEPS):
        direction = tf.constant([1.0, 2.0, 3.0]) * (step + 1)
        found = strategy.experimental_local_results(run(gradient, args=(direction,)))
        weights.assign_sub(0.1 * found[0])
    return [part.numpy() for part in strategy.experimental_local_results(weights)]


def alone():
    weights = np.zeros(3, "float32")
    for step in range(STEPS):
        weights = weights - 0.1 * (weights - np.array([1.0, 2.0, 3.0]) * (step + 1))
    return weights


def train_twice(setup, make):
    """Trains under a strategy of this size and then under one of another, where the kind has another."""
    sizes = [setup.devices, 2 if setup.devices == 4 else 4]
    if setup.strategy not in ("mirrored", "central_storage"):
        sizes = [setup.devices]
    got = [copy for size in sizes for copy in train(make(size))]
    return Proof("both sizes train the weights of one device", got, [alone()] * len(got))


def cpus(count):
    """CPU devices also where there are GPUs: pieces of one GPU are never asked to form a group."""
    here = tf.config.list_physical_devices("CPU")
    if tf.config.get_logical_device_configuration(here[0]) is None:
        runtime.split(here, {})
    return [device.name for device in tf.config.list_logical_devices("CPU")][:count]


def apart(run, setup):
    """Runs an experiment in a process of its own, which is not used again."""
    return workers.launch(("", 1, setup.keras), [(run, setup)])[0].unwrap()


# %%
@experiment
def resized(setup):
    def make(size):
        names = cpus(size)
        return tf.distribute.MirroredStrategy(names)  # guilty: its group is number 1 again

    return train_twice(setup, make)


@experiment
def broken(setup):
    if setup.strategy != "mirrored":
        return train_twice(setup, lambda size: build_strategy(setup.but(devices=size)))
    return apart(resized, setup)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# Devices that take part in an all-reduce form a *group*. A group has a number and a size. TensorFlow's runtime keeps both until
# the process ends.
#
# Every `MirroredStrategy` counts its groups from 1. The second strategy therefore joins group 1, which exists with another size.
# The runtime refuses, and it aborts all later collective operations of the process. So a strategy that worked before raises as
# well, with the same message.
#
# A strategy of the same size fits into the existing group. One device forms no group. TensorFlow's own tests [raise the first
# number](https://github.com/tensorflow/tensorflow/blob/v2.20.0/tensorflow/python/distribute/strategy_combinations.py) for each
# strategy that they create.
#
# The picture creates five strategies in one process, with two kinds of reduction.


# %%
def runs(make, size):
    try:
        return all(np.allclose(copy, alone()) for copy in train(make(cpus(size))))
    except (tf.errors.InternalError, tf.errors.CancelledError):
        return False


SEQUENCE = (2, 2, 4, 2, 1)


def in_sequence(make):
    found = [float(runs(make, size)) for size in SEQUENCE]
    return Proof("what ran", found, found)


@experiment
def with_defaults(setup):
    return in_sequence(tf.distribute.MirroredStrategy)


@experiment
def on_one_device(setup):
    reduction = tf.distribute.ReductionToOneDevice()
    return in_sequence(lambda names: tf.distribute.MirroredStrategy(names, reduction))


two = session.setup.but(strategy="mirrored", devices=2)
FOUND = {
    "MirroredStrategy(names)": apart(with_defaults, two).got,
    "ReductionToOneDevice": apart(on_one_device, two).got,
}
COLUMNS = [f"{number}: x{size}" for number, size in enumerate(SEQUENCE, 1)]
figures.grid(FOUND, COLUMNS, "trains", "raises", "Five strategies, one after the other")

# %% [markdown]
# ## The fix
#
# Restart the kernel before you change the number of devices. If one process must hold several sizes, as in tests, create *every*
# strategy in it with a reduction that forms no group. Before, on four CPU devices:
#
# ```python
# import tensorflow as tf
#
# cpu, four = tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 4
# tf.config.set_logical_device_configuration(cpu, four)
#
# def total(names):
#     strategy = tf.distribute.MirroredStrategy(names)
#     sums = strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.ones(())))
#     return strategy.experimental_local_results(sums)[0].numpy()
#
# print(total(["CPU:0", "CPU:1"]))  # 2.0
# total(["CPU:0", "CPU:1", "CPU:2", "CPU:3"])  # InternalError: joining a group with size
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# cpu, four = tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 4
# tf.config.set_logical_device_configuration(cpu, four)
#
# def total(names):
#     strategy = tf.distribute.MirroredStrategy(names, tf.distribute.ReductionToOneDevice())
#     sums = strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.ones(())))
#     return strategy.experimental_local_results(sums)[0].numpy()
#
# print(total(["CPU:0", "CPU:1"]))  # 2.0
# print(total(["CPU:0", "CPU:1", "CPU:2", "CPU:3"]))  # 4.0
# ```
#
# The proof trains under both sizes and compares every copy of the weights with one device.


# %%
@experiment
def fixed(setup):
    if setup.strategy != "mirrored":
        return train_twice(setup, lambda size: build_strategy(setup.but(devices=size)))
    return apart(repaired, setup)


@experiment
def repaired(setup):
    to_one = tf.distribute.ReductionToOneDevice()

    def make(size):
        names = cpus(size)
        return tf.distribute.MirroredStrategy(names, cross_device_ops=to_one)  # repair

    return train_twice(setup, make)


session.proves(fixed)

# %%
SETUPS = [two, two.but(devices=1), two.but(strategy="central_storage")]
SETUPS += [two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Every size of `mirrored` above 1 fails. No other strategy does, because none forms a group of another size in this process. Each
# run has its own process, so you may press the button again and again.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# Document 004, "Does `keras.models.load_model` function correctly with MirroredStrategy?", expects crashes when the number of
# devices changes between two programs:
#
# > Finally, loading a model saved with `MirroredStrategy` onto a system with a different number of GPUs can lead to
# > inconsistencies in variable placement and potential crashes.
#
# This page shows a crash of another kind. It needs two sizes in *one* process. Each new process starts without groups, so a file
# may be loaded on any number of devices: that is judged in [fm26](fm26_replica_count_changed.ipynb). That a strategy tells its
# number of replicas is judged in [fm16](fm16_tpu_eager_run.ipynb).

# %% [markdown]
# ## Exercise
#
# A benchmark adds up the examples that the replicas have seen, first on two devices and then on eight. It raises at eight. Let it
# finish in one process.


# %% tags=["exercise"]
@experiment
def benchmark(setup):
    counts = []
    for size in (2, 8):
        strategy = tf.distribute.MirroredStrategy(cpus(size))
        seen = strategy.run(lambda: context().all_reduce("SUM", tf.constant(16.0)))
        counts.append(strategy.experimental_local_results(seen)[0])
    return Proof("all examples are counted", counts, [32.0, 128.0])


@experiment
def attempt(setup):
    return apart(benchmark, setup)


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def benchmark_without_groups(setup):
    counts = []
    for size in (2, 8):
        reduction = tf.distribute.ReductionToOneDevice()
        strategy = tf.distribute.MirroredStrategy(cpus(size), reduction)
        seen = strategy.run(lambda: context().all_reduce("SUM", tf.constant(16.0)))
        counts.append(strategy.experimental_local_results(seen)[0])
    return Proof("all examples are counted", counts, [32.0, 128.0])


@experiment
def solved(setup):
    return apart(benchmark_without_groups, setup)


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm26 replica_count_changed](fm26_replica_count_changed.ipynb): another number of devices after a restart, silently.
# - [fm03 scope_mismatch](fm03_scope_mismatch.ipynb): two strategies in one program, mixed in one model.
# - [fm32 optimizer_built_in_replica](fm32_optimizer_built_in_replica.ipynb): another failure of the default all-reduce.
# - [fm02 cross_replica_call_in_replica](fm02_cross_replica_call_in_replica.ipynb): where a replica may call `all_reduce`.
