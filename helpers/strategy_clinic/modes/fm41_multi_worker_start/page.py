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
# *Loud, on several workers only. Which saves hang depends on Keras. Reported as
# [tensorflow#34568](https://github.com/tensorflow/tensorflow/issues/34568),
# [#30551](https://github.com/tensorflow/tensorflow/issues/30551) and
# [#55178](https://github.com/tensorflow/tensorflow/issues/55178). The `TPUStrategy` reference (003) is about one process.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

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
        Symptom(
            "InvalidArgumentError",
            r"device:\w+:\d+ unknown device",
            strategies=("parameter_server",),
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
import strategy_clinic as clinic

session = clinic.open("fm41", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You read the data, then you choose a strategy: that order works for every strategy of one process. You believe that a strategy
# can be created wherever it is first needed.
#
# Each experiment on this page runs in two real processes, which find each other through `TF_CONFIG`, on this machine.

# %%
import contextlib
import os
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures, formats

LIMIT = 2  # seconds after which a save is said to wait


def make_data():
    return tf.data.Dataset.range(8).map(lambda number: tf.cast(number, tf.float32)).batch(4)


def total(strategy, data):
    """The sum of all examples, each worker's part added up by the strategy."""
    if isinstance(strategy, tf.distribute.ParameterServerStrategy):
        return sum(float(tf.reduce_sum(batch)) for batch in data)

    @tf.function
    def add(batch):
        return strategy.reduce("SUM", strategy.run(tf.reduce_sum, args=(batch,)), axis=None)

    return sum(float(add(batch)) for batch in strategy.experimental_distribute_dataset(data))


def proof(strategy, data):
    return Proof("all workers together add up all examples", [total(strategy, data)], [28.0])


# %%
@experiment
def broken(setup):
    data, strategy = make_data(), build_strategy(setup)  # guilty: the data come first
    return proof(strategy, data)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# The first operation in a process starts TensorFlow's runtime, with the devices of this process. Workers that add up gradients
# need a runtime that also knows the others. `MultiWorkerMirroredStrategy` sets this up, which is possible only before the
# runtime starts. A dataset, a variable and a model are operations. A seed is none.
#
# A save can need an operation of all workers. A variable with `ON_READ` has a value of its own on each worker, and is put
# together when it is read. Metrics and moving statistics of Keras 2 are such variables. The chief then waits for the others,
# which have gone on. Keras 3 saves none.
#
# The pictures show what may come before the strategy, and which saves the chief can do alone. See [the tutorial on several
# workers](https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras).


# %%
def operations():
    return {
        "set_seed": lambda: tf.random.set_seed(1),
        "physical devices": tf.config.list_physical_devices,
        "a layer": lambda: tf.keras.layers.Dense(1),
        "logical devices": tf.config.list_logical_devices,
        "a dataset": lambda: tf.data.Dataset.range(3),
        "a variable": lambda: tf.Variable(1.0),
    }


def may_precede(operation):
    """Tried in a copy of this process: the runtime has started if its threads can no longer be set."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(Exception):
            operation()
            tf.config.threading.set_inter_op_parallelism_threads(3)
            os._exit(0)
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def is_chief(strategy):
    return not strategy.cluster_resolver or not strategy.cluster_resolver.task_id


def saves(strategy, folder):
    """Ways to save a model with moving statistics and a metric; and a variable of each worker's own."""
    with strategy.scope():
        layers = [tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(1)]
        model = tf.keras.Sequential([tf.keras.Input((1,)), *layers])
        model.compile("sgd", tf.keras.losses.MeanSquaredError(), metrics=["mae"])
        model.optimizer.build(model.trainable_variables)
        seen = own_variable()
    kinds = {".keras": "keras", ".weights.h5": "weights_h5", "checkpoint": "checkpoint"}
    calls = {
        name: lambda kind=kind: formats.save(model, folder, kind) for name, kind in kinds.items()
    }
    return calls | {"ON_READ": lambda: tf.train.Checkpoint(seen=seen).write(f"{folder}/seen")}


def own_variable():
    kind = {"synchronization": tf.VariableSynchronization.ON_READ}
    return tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM, trainable=False, **kind)


def ends_alone(strategy, name, save):
    """Whether the chief ends its save while the other worker does something else; that one helps it after a while."""
    strategy.reduce("SUM", strategy.run(lambda: tf.ones(())), axis=None)  # both begin now
    begin, done = time.monotonic(), Path(tempfile.gettempdir()) / f"done {name}"
    if is_chief(strategy):
        save()
        done.touch()
        return time.monotonic() - begin < LIMIT
    while not done.exists() and time.monotonic() - begin < LIMIT:
        time.sleep(0.05)
    if not done.exists():
        save()
    return False


def fit_runs(strategy):
    """Whether one epoch of `fit` comes to its end on all workers."""
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
        model.compile("sgd", tf.keras.losses.MeanSquaredError())
    ones = np.ones((8, 1), "float32")
    try:
        model.fit(ones, ones, verbose=0)
    except ValueError:
        return False
    return True


@experiment
def tried(setup):
    found = [may_precede(each) for each in operations().values()]
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        calls = saves(strategy, folder)
        found += [ends_alone(strategy, name, save) for name, save in calls.items()]
    found = [float(each) for each in [*found, fit_runs(strategy)]]
    return Proof("what was tried", found, found)


workers = session.setup.but(strategy="multi_worker", devices=2)
*BEFORE, KERAS, WEIGHTS, CHECKPOINT, OWN, FIT = tried(workers).got
STARTS = {name: [found] for name, found in zip(operations(), BEFORE)}
figures.grid(STARTS, ["before the strategy"], "works", "raises", "What may come first?")

# %%
ALONE = {".keras": KERAS, ".weights.h5": WEIGHTS, "checkpoint": CHECKPOINT, "ON_READ": OWN}
ROWS = {name: [found] for name, found in ALONE.items()}
figures.grid(ROWS, ["by the chief alone"], "ends", "waits", "Which saves end?")

# %% [markdown]
# ## The fix
#
# Create the strategy first. One worker is enough to see it. Before:
#
# ```python
# import os
# import tensorflow as tf
#
# os.environ["TF_CONFIG"] = '{"cluster": {"worker": ["localhost:0"]}, "task": {"type": "worker", "index": 0}}'
# data = tf.data.Dataset.range(8)
# strategy = tf.distribute.MultiWorkerMirroredStrategy()  # RuntimeError: Collective ops must be configured at program startup
# ```
#
# After:
#
# ```python
# import os
# import tensorflow as tf
#
# os.environ["TF_CONFIG"] = '{"cluster": {"worker": ["localhost:0"]}, "task": {"type": "worker", "index": 0}}'
# strategy = tf.distribute.MultiWorkerMirroredStrategy()
# data = tf.data.Dataset.range(8)
# print(strategy.num_replicas_in_sync)  # 1
# ```
#
# Modules that you import may run operations too: a variable at their top level is enough. Import them after the strategy exists.
#
# Save on every worker, each into a folder of its own, and delete all but the chief's. That is right for every model and both
# generations of Keras; the chief is worker 0.


# %%
@experiment
def fixed(setup):
    strategy, data = build_strategy(setup), make_data()  # repair: the strategy comes first
    return proof(strategy, data)


session.proves(fixed)

# %%
SETUPS = [workers, workers.but(keras=session.setup.other_keras)]
SETUPS += [workers.but(strategy="mirrored"), workers.but(strategy="default", devices=1)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Choose a strategy of one process: the same order works. With `parameter_server` the data are on a device that has another name
# once the strategy exists, and the first step says `unknown device`.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# Answers to [tensorflow#34568](https://github.com/tensorflow/tensorflow/issues/34568) and
# [#30551](https://github.com/tensorflow/tensorflow/issues/30551) advise another version of Python, or to set `TF_CONFIG` on
# every machine. `TF_CONFIG` was set in the runs above, and they raise. One answer of #30551 is right: the strategy comes before
# the dataset and the models.
#
# Document 003 calls `fit` under a strategy. With Keras 3 that raises on several workers: `Attempt to convert a value
# (PerReplica…`, which is [keras#20585](https://github.com/keras-team/keras/issues/20585). There, write your own loop with
# `strategy.run`, or use `tf_keras`.

# %%
print(f"an epoch of fit on two workers, on Keras {workers.keras}:", "ends" if FIT else "raises")

# %% [markdown]
# ## Exercise
#
# Each worker counts its examples in a variable of its own. The chief saves the count, and waits. Change the script so that the
# file holds the count of all workers. `in_time` gives up after three seconds.


# %% tags=["exercise"]
def in_time(save):
    thread = threading.Thread(target=save, daemon=True)
    thread.start()
    thread.join(3)
    if thread.is_alive():
        raise TimeoutError("the save has not ended: it waits for the other worker")


@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        seen = own_variable()
    tf.function(strategy.run)(lambda: seen.assign_add(tf.constant(4.0)))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/seen"
        if is_chief(strategy):
            in_time(lambda: tf.train.Checkpoint(seen=seen).write(path))
        saved = tf.train.load_variable(path, "seen/.ATTRIBUTES/VARIABLE_VALUE")
    counted = 4.0 * strategy.num_replicas_in_sync
    return Proof("the file holds the count of all workers", [saved], [counted])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        seen = own_variable()
    tf.function(strategy.run)(lambda: seen.assign_add(tf.constant(4.0)))
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/seen"
        in_time(lambda: tf.train.Checkpoint(seen=seen).write(path))
        saved = tf.train.load_variable(path, "seen/.ATTRIBUTES/VARIABLE_VALUE")
    counted = 4.0 * strategy.num_replicas_in_sync
    return Proof("the file holds the count of all workers", [saved], [counted])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm36 replica_group_resized](fm36_replica_group_resized.ipynb): the other thing that a process can do only once.
# - [fm42 input_ends_or_is_not_sharded](fm42_input_ends_or_is_not_sharded.ipynb): what stops the workers in their first step.
# - [fm17 tpu_not_initialised](fm17_tpu_not_initialised.ipynb): the start on a TPU.
# - [fm38 replica_state_diverges](fm38_replica_state_diverges.ipynb): variables whose copies differ, and what is saved of them.
