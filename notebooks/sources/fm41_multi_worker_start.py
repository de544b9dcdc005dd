# %% [markdown]
# # FM41. An operation before `MultiWorkerMirroredStrategy` stops every worker at its start
#
# A script trains in one process. You start it on two machines, with `MultiWorkerMirroredStrategy`, and the line that creates the
# strategy raises in each of them. Once that is mended, saving on the chief alone waits for ever.
#
# ```text
# RuntimeError: Collective ops must be configured at program startup
# ```
#
# *Loud, on several workers only; saving on the chief alone hangs. Keras does not matter. Reported as
# [tensorflow#34568](https://github.com/tensorflow/tensorflow/issues/34568),
# [#30551](https://github.com/tensorflow/tensorflow/issues/30551) and
# [#55178](https://github.com/tensorflow/tensorflow/issues/55178). The `TPUStrategy` reference (003) is about one process.*

# %% tags=["declaration"]
from helpers import FailureMode, Symptom

MODE = FailureMode(
    id="fm41",
    slug="multi_worker_start",
    title="An operation before `MultiWorkerMirroredStrategy` stops every worker at its start",
    sees="`Collective ops must be configured at program startup`, or a chief that never ends its save",
    fix="create the strategy in the first line after the imports, and save on every worker",
    document="003",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "RuntimeError",
            r"Collective ops must be configured at program startup",
            strategies=("multi_worker",),
        ),
    ),
    claims=(),
)

# %% tags=["parameters"]
strategy = "multi_worker"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm41", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You read the data, then you choose a strategy: that order works for every strategy of one process. You believe that a strategy
# can be created wherever it is first needed.
#
# Each experiment on this page runs in two real processes, which find each other through `TF_CONFIG`, on this machine.

# %%
import json
import os
import tempfile
import threading
import time

import tensorflow as tf

from helpers import Proof, build_strategy, experiment, figures, formats


def make_data():
    return tf.data.Dataset.range(8).map(lambda number: tf.cast(number, tf.float32)).batch(4)


def total(strategy, data):
    """The sum of all examples, each worker's part added up by the strategy."""
    if isinstance(strategy, tf.distribute.ParameterServerStrategy):
        return sum(float(tf.reduce_sum(batch)) for batch in data)
    parts = strategy.experimental_distribute_dataset(data)

    @tf.function
    def add(batch):
        return strategy.reduce("SUM", strategy.run(tf.reduce_sum, args=(batch,)), axis=None)

    return sum(float(add(batch)) for batch in parts)


def proof(strategy, data):
    return Proof("all workers together add up all examples", [total(strategy, data)], [28.0])


# %%
@experiment
def broken(setup):
    data, strategy = make_data(), build_strategy(setup)  # guilty: the data come first
    return proof(strategy, data)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# The first operation in a process starts TensorFlow's runtime, with the devices of this process. Workers that add up gradients
# need a runtime that also knows the others, by a *collective leader*. `MultiWorkerMirroredStrategy` sets it, and that is
# possible only before the runtime starts. A dataset, a variable, a model, a tensor: each is an operation.
#
# A save can need an operation of all workers too. A variable that every worker has a value of its own of, such as the moving
# statistics of Keras 2, is put together when it is read. The chief then waits for the others, which have gone on.
#
# The pictures try what may come before the strategy, and let the chief save while the other worker sleeps for a second. See [the
# tutorial on several workers](https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras).
