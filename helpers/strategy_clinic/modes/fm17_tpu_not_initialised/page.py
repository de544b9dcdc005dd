# %% [markdown]
# # FM17. The program asks for a TPU that nobody has found
#
# The first four lines of a TPU example find the TPU, connect to it, initialise it and make the strategy. On another machine they
# raise. No message says that there is no TPU, or that this TensorFlow cannot use one.
#
# ```text
# ValueError: Please provide a TPU Name to connect to.
# ```
#
# *Loud, on every machine without a TPU that TensorFlow can use. The document is the reference of `tf.distribute.TPUStrategy`
# (003).*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm17",
    slug="tpu_not_initialised",
    title="The program asks for a TPU that nobody has found",
    sees="`Please provide a TPU Name to connect to`, or no OpKernel for `ConfigureDistributedTPU`",
    fix='try `TPUClusterResolver.connect("local")`, and use another strategy if it raises',
    document="003",
    switches=("strategy",),
    symptoms=(Symptom("ValueError", r"Please provide a TPU Name to connect to"),),
    claims=(
        Claim("003-C2", "connect, initialise, construct; no resolver means a local TPU", "half"),
    ),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm17", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You believe that an empty name means "the TPU of this machine", because the reference writes it so. You start the program on
# such a machine, and TensorFlow asks for a name that you never had.

# %%
import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures

STEPS = 3


def connected(name):
    """The four lines of the reference, in its order."""
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name)
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)


def train(strategy):
    """A few steps in which all replicas sum their gradients; every copy of the weights must be that of one device."""
    with strategy.scope():
        weights = tf.Variable(tf.zeros(3))

    def gradient(wanted):
        context = tf.distribute.get_replica_context()
        mine = (weights.read_value() - wanted) / context.num_replicas_in_sync
        return context.all_reduce("SUM", mine)

    @tf.function
    def train_step(wanted):
        return strategy.run(gradient, args=(wanted,))

    alone = np.zeros(3, "float32")
    for step in range(STEPS):
        wanted = np.array([1.0, 2.0, 3.0], "float32") * (step + 1)
        found = strategy.experimental_local_results(train_step(tf.constant(wanted)))
        weights.assign_sub(0.1 * found[0])
        alone = alone - 0.1 * (alone - wanted)
    got = [part.numpy() for part in strategy.experimental_local_results(weights)]
    return Proof("it trains the weights of one device", got, [alone] * len(got))


# %%
@experiment
def broken(setup):
    strategy = connected("")  # guilty: an empty name is no name, and not this machine
    return train(strategy)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# The resolver was made for TPUs at the other end of a network, which have names. With an empty name it reads the environment
# variable `TPU_NAME`. Where that is not set, it raises this error. The TPU of this machine has no name; `tpu="local"` stands for
# it.
#
# With `"local"` the resolver searches for nothing, so the first line always passes. The second line has nothing to connect to.
# The third runs an operation on the TPU. The ordinary `tensorflow` package does not contain that operation, so without a TPU, or
# without `tensorflow-tpu`, it reports a missing `OpKernel`.
#
# The picture tries each line on this machine. See
# [`TPUClusterResolver`](https://www.tensorflow.org/api_docs/python/tf/distribute/cluster_resolver/TPUClusterResolver).

# %%
REFUSALS = (ValueError, IndexError, tf.errors.NotFoundError)
LINES = {
    "TPUClusterResolver": lambda resolver: resolver,
    "connect_to_cluster": tf.config.experimental_connect_to_cluster,
    "initialize_tpu_system": tf.tpu.experimental.initialize_tpu_system,
    "TPUStrategy": tf.distribute.TPUStrategy,
}


def passes(line, name):
    try:
        line(tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name))
    except REFUSALS:
        return False
    return True


FOUND = {row: [passes(line, name) for name in ("", "local")] for row, line in LINES.items()}
figures.grid(FOUND, ['tpu=""', 'tpu="local"'], "passes", "raises", "Each line by itself")

# %% [markdown]
# ## The fix
#
# `TPUClusterResolver.connect` does the first three lines. Try it with `"local"`, and use another strategy if it raises. Before:
#
# ```python
# import tensorflow as tf
#
# resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")  # ValueError: Please provide a TPU Name to connect to
# tf.config.experimental_connect_to_cluster(resolver)
# tf.tpu.experimental.initialize_tpu_system(resolver)
# strategy = tf.distribute.TPUStrategy(resolver)
# ```
#
# After, on a machine with two other devices and no TPU:
#
# ```python
# import tensorflow as tf
#
# try:
#     resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect("local")
#     strategy = tf.distribute.TPUStrategy(resolver)
# except (ValueError, tf.errors.NotFoundError):
#     strategy = tf.distribute.MirroredStrategy()
# print(strategy.num_replicas_in_sync)  # 2
# ```
#
# If there is a TPU and this still takes the other strategy, install TensorFlow for it. TPU runtimes of Colab come without any:
#
# ```text
# pip install tensorflow-tpu==2.20.0 "libtpu<0.0.22"     Python up to 3.13
# pip install tensorflow-tpu==2.19.1                     Python up to 3.12, with the libtpu that fits it
# ```
#
# We know this from the packages, and have not run it on a TPU.
#
# The experiment makes the other strategy first: `MultiWorkerMirroredStrategy` must exist before TensorFlow runs anything, and
# the attempt runs something. The proof is that the program trains the right weights.


# %%
def tpu_or(other):
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect("local")
        return tf.distribute.TPUStrategy(resolver)
    except (ValueError, tf.errors.NotFoundError):
        return other


@experiment
def fixed(setup):
    strategy = tpu_or(build_strategy(setup))  # repair: without a TPU, another strategy
    return train(strategy)


session.proves(fixed)

# %%
one = session.setup.but(strategy="default", devices=1)
SETUPS = [one, one.but(keras=session.setup.other_keras), one.but(strategy="mirrored", devices=2)]
SETUPS += [one.but(strategy="tpu_traced", devices=8)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch to `mirrored`: the broken program fails under every strategy, because it never asks for yours. The repaired one uses
# yours wherever there is no TPU.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The reference of `tf.distribute.TPUStrategy` (003) says:
#
# > To construct a TPUStrategy object, you need to run the initialization code as below:
#
# > tpu_cluster_resolver … If None, it will assume running on a local TPU worker.
#
# The order is right: without the third line, the fourth finds no cores. The second sentence is wrong where `TPU_NAME` is not set,
# as in this run: without a resolver, `TPUStrategy` asks for a name like the resolver itself. We have not tried it where it is
# set.


# %% tags=["claims"]
import os


def says(call):
    try:
        call()
    except REFUSALS as refusal:
        return str(refusal)
    return ""


def order_matters():
    """Without the third line, the fourth finds no cores."""
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    tf.config.experimental_connect_to_cluster(resolver)
    return bool(says(lambda: tf.distribute.TPUStrategy(resolver)))


print("TPU_NAME is", "set" if os.environ.get("TPU_NAME") else "not set")
assumed_local = "provide a TPU Name" not in says(tf.distribute.TPUStrategy)
session.judges({"003-C2": [order_matters(), assumed_local]})

# %% [markdown]
# ## Exercise
#
# A colleague has written a way out for machines without a TPU, and left out a line that "did nothing". The way out is never
# taken. Let the program go on without a TPU, as it was meant to.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
        strategy = tf.distribute.TPUStrategy(resolver)
    except ValueError:
        strategy = build_strategy(setup)
    return train(strategy)


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect("local")
        strategy = tf.distribute.TPUStrategy(resolver)
    except (ValueError, tf.errors.NotFoundError):
        strategy = build_strategy(setup)
    return train(strategy)


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm16 tpu_eager_run](fm16_tpu_eager_run.ipynb): the next thing that a TPU refuses, once it is found.
# - [fm18 logical_devices](fm18_logical_devices.ipynb): the mesh of cores that `initialize_tpu_system` describes.
