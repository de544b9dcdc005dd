# %% [markdown]
# # FM17. The program asks for a TPU that nobody has found
#
# The first four lines of every TPU example find the TPU, connect to it, initialise it and make the strategy. Copied into
# another place they raise, each in words of its own, and none of them says that there is no TPU or that no TensorFlow here can
# use one.
#
# ```text
# ValueError: Please provide a TPU Name to connect to.
# ```
#
# *Loud, on every machine without a TPU that TensorFlow can use. From document 003.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm17",
    slug="tpu_not_initialised",
    title="The program asks for a TPU that nobody has found",
    sees="`Please provide a TPU Name to connect to`, or no OpKernel for `ConfigureDistributedTPU`",
    fix='ask whether a TPU is attached and `tensorflow-tpu` installed, then resolve `tpu="local"`',
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
import helpers

clinic = helpers.open("fm17", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You believe that an empty name means "the TPU of this machine", since the reference writes it so. Then you choose a TPU
# runtime, start your program, and are asked for a name that you never had.

# %%
import sys

import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, experiment, figures, runner, runtime

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

    run, alone = runner(strategy), np.zeros(3, "float32")
    for step in range(STEPS):
        wanted = np.array([1.0, 2.0, 3.0], "float32") * (step + 1)
        found = strategy.experimental_local_results(run(gradient, args=(tf.constant(wanted),)))
        weights.assign_sub(0.1 * found[0])
        alone = alone - 0.1 * (alone - wanted)
    got = [part.numpy() for part in strategy.experimental_local_results(weights)]
    return Proof("it trains the weights of one device", got, [alone] * len(got))


# %%
@experiment
def broken(setup):
    strategy = connected("")  # guilty: an empty name is no name, and not this machine
    return train(strategy)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# The resolver was written for TPUs at the far end of a network, which have names. With an empty name it looks into the
# environment (`TPU_NAME`), and where it finds none it asks you. A TPU in the machine itself has no name; `tpu="local"` says so.
#
# That word is believed. The resolver looks for nothing, connecting has nobody to connect to, and only the third line runs an
# operation that needs the hardware, and a TensorFlow that was built for it. The ordinary `tensorflow` package is not: it
# reports a missing `OpKernel` in both cases.
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
# Ask before you connect, and say what is missing: the hardware, or the package. TPU runtimes of Colab come without any
# TensorFlow, so `tensorflow-tpu` is the first thing that a notebook installs there. 2.20.0, the last one, has wheels up to
# Python 3.13 and takes any newer `libtpu`, so pin that; up to Python 3.12 there is 2.19.1 too, which names the one that it
# fits. We know this from the packages, and have not run it on a TPU.
#
# Without a TPU the program goes on with another strategy. The proof is that what it trains is right. Below it stands what
# `missing` says of four machines.


# %%
def missing(attached, package, python):
    """What keeps a program from using a TPU, in a sentence; nothing if it can."""
    if not attached:
        return "no TPU is attached: choose a TPU runtime, or another strategy"
    if not package:
        wanted = "2.19.1" if python <= (3, 12) else '2.20.0 "libtpu<0.0.22"'
        return f"a TPU, but no TensorFlow for it: pip install tensorflow-tpu=={wanted}"
    return ""


def missing_here():
    package = runtime.has_version("tensorflow-tpu")
    return missing(runtime.tpu_attached(), package, sys.version_info[:2])


@experiment
def fixed(setup):
    strategy = build_strategy(setup) if missing_here() else connected("local")  # repair
    return train(strategy)


clinic.proves(fixed)
for attached, package, python in (
    (False, None, (3, 12)),
    (True, None, (3, 12)),
    (True, None, (3, 13)),
    (True, "2.20.0", (3, 13)),
):
    print(missing(attached, package, python) or "ready to connect")

# %%
one = clinic.setup.but(strategy="default", devices=1)
SETUPS = [one, one.but(keras=clinic.setup.other_keras), one.but(strategy="mirrored", devices=2)]
SETUPS += [one.but(strategy="tpu_traced", devices=8), one.but(strategy="tpu", devices=8)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# The broken program does not look at the strategy that you choose, so it fails under all of them. The repaired one takes yours
# wherever there is no TPU.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# The reference, document 003, has the order right: a strategy that is made before the system is initialised finds a TPU without
# cores. It also says that a strategy without a resolver assumes a TPU in this machine. It does not; it looks for a name, like
# the resolver, and says so in the same words.


# %% tags=["claims"]
def says(call):
    try:
        call()
    except REFUSALS as refusal:
        return str(refusal)
    return ""


def order_matters():
    """Without the third line, the fourth finds no cores; up to there `local` is taken on trust."""
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    tf.config.experimental_connect_to_cluster(resolver)
    return bool(says(lambda: tf.distribute.TPUStrategy(resolver)))


assumed_local = "provide a TPU Name" not in says(tf.distribute.TPUStrategy)
clinic.judges({"003-C2": [order_matters(), assumed_local]})

# %% [markdown]
# ## Exercise
#
# A colleague has shortened the program: two lines seemed to do nothing, and a resolver that was made is proof of a TPU. Let the
# program go on without a TPU, as it was meant to.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    strategy = tf.distribute.TPUStrategy(resolver) if resolver else build_strategy(setup)
    return train(strategy)


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup) if missing_here() else connected("local")
    return train(strategy)


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm16 tpu_eager_run](fm16_tpu_eager_run.ipynb): the next thing that a TPU refuses, once it is found.
# - [fm18 logical_devices](fm18_logical_devices.ipynb): the mesh of cores that initialising it describes.
