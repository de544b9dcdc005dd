# %% [markdown]
# # FM36. A second MirroredStrategy of another size breaks all of them
#
# You train on two devices, make a new strategy with four in the same notebook, and the first step raises. You go back to two,
# which has just worked, and that raises too.
#
# ```text
# InternalError: The error could be from a previous operation. Restart your program to reset. [Op:CollectiveReduceV2] name:
# ```
#
# *Loud. Every order of two sizes has it, unless one of them is 1. Document 003 says nothing of it.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

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
    claims=(
        Claim("003-C3", "the strategy says how many replicas it has", "true"),
        Claim("004-C4", "another number of devices leads to crashes", "false"),
    ),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm36", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# A strategy looks like any other Python object: you make one, use it, drop it, and make another. So the cell that compares two
# and four devices makes a strategy for each.
#
# What it breaks stays broken until the process ends. Therefore `apart` gives each run of it a process to ruin, and this kernel
# stays as it is.

# %%
import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, experiment, figures, runner, runtime, workers

STEPS = 3


def context():
    return tf.distribute.get_replica_context()


def train(strategy):
    """Every replica asks all others for the sum of their gradients. Returns the copies of the weights."""
    with strategy.scope():
        weights = tf.Variable(tf.zeros(3))

    def gradient(direction):
        mine = (weights.read_value() - direction) / context().num_replicas_in_sync
        return context().all_reduce("SUM", mine)

    run = runner(strategy)
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
        return tf.distribute.MirroredStrategy(names)  # guilty: its group is number 1, as always

    return train_twice(setup, make)


@experiment
def broken(setup):
    if setup.strategy != "mirrored":
        return train_twice(setup, lambda size: build_strategy(setup.but(devices=size)))
    return apart(resized, setup)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# Devices that sum something together form a *group*, and a group has a number. TensorFlow's runtime keeps the numbers for as
# long as the process lives; every `MirroredStrategy` counts its own, from 1. So the second strategy asks to join group 1, which
# the first has left behind with another size. The runtime refuses, and aborts collective operations for good: the strategies
# that had worked are refused as well, with the message that was meant for another.
#
# A strategy of the same devices fits into the old group, and one device alone forms none, which is why it can take long to meet
# this. TensorFlow's own tests [raise the first
# number](https://github.com/tensorflow/tensorflow/blob/v2.20.0/tensorflow/python/distribute/strategy_combinations.py) for each
# strategy that they make.
#
# The picture makes five strategies in one process, built in three ways.


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


@experiment
def by_hierarchy(setup):
    reduction = tf.distribute.HierarchicalCopyAllReduce()
    return in_sequence(lambda names: tf.distribute.MirroredStrategy(names, reduction))


two = clinic.setup.but(strategy="mirrored", devices=2)
FOUND = {
    "MirroredStrategy(names)": apart(with_defaults, two).got,
    "HierarchicalCopyAllReduce": apart(by_hierarchy, two).got,
    "ReductionToOneDevice": apart(on_one_device, two).got,
}
COLUMNS = [f"{number}: x{size}" for number, size in enumerate(SEQUENCE, 1)]
figures.grid(FOUND, COLUMNS, "trains", "raises", "Five strategies, one after the other")

# %% [markdown]
# ## The fix
#
# One size, one process: restart the kernel before you change the number of devices. Where one process must hold several sizes,
# as in tests and in notebooks that compare them, build each strategy with a reduction that forms no group.
#
# Do it for all of them, from the first. The proof trains under both sizes and holds every copy of the weights against one
# device.


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


clinic.proves(fixed)

# %%
SETUPS = [two, two.but(devices=8), two.but(devices=1), two.but(keras=clinic.setup.other_keras)]
SETUPS += [clinic.setup.but(strategy=name, devices=8) for name in ("central_storage", "tpu_traced")]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Every size of `mirrored` above 1 fails. No other strategy does: none of them forms a group whose size this process could
# change. You may press the button as often as you like, since each broken run has its own process.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# The reference, document 003, gives a strategy a number of replicas and says nothing about a second strategy. Document 004
# expects crashes when the number of devices changes between two programs. It does not crash there: each process starts with no
# groups, and the number may be any.


# %% tags=["claims"]
@experiment
def one_size(setup):
    strategy = tf.distribute.MirroredStrategy(cpus(setup.devices))
    got = [strategy.num_replicas_in_sync, *train(strategy)]
    return Proof("one size trains", got, [setup.devices] + [alone()] * setup.devices)


def one_process_each(sizes):
    """Whether each size, with the default reduction and in a process of its own, trains what one device trains."""
    return [apart(one_size, two.but(devices=size)).holds for size in sizes]


trained = one_process_each((2, 4))
clinic.judges({"003-C3": trained, "004-C4": [not each for each in trained]})

# %% [markdown]
# ## Exercise
#
# A benchmark adds up the examples that the replicas have seen, on two devices and on eight. It dies at eight. Let it come to
# its end in one process.


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


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def benchmark_without_groups(setup):
    counts = []
    for size in (2, 8):
        reduction = tf.distribute.HierarchicalCopyAllReduce()
        strategy = tf.distribute.MirroredStrategy(cpus(size), reduction)
        seen = strategy.run(lambda: context().all_reduce("SUM", tf.constant(16.0)))
        counts.append(strategy.experimental_local_results(seen)[0])
    return Proof("all examples are counted", counts, [32.0, 128.0])


@experiment
def solved(setup):
    return apart(benchmark_without_groups, setup)


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm26 replica_count_changed](fm26_replica_count_changed.ipynb): another number of devices after a restart, unnoticed.
# - [fm03 scope_mismatch](fm03_scope_mismatch.ipynb): two strategies in one program that get into each other's way at once.
# - [fm31 replica_call_in_cross_replica](fm31_replica_call_in_cross_replica.ipynb): where a replica's all-reduce may be called.
