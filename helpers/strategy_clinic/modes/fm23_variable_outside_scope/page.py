# %% [markdown]
# # FM23. A variable made outside the scope takes the update of every replica
#
# A running mean is right on one device and wrong on two, and each further device adds to the error. The line that makes the
# variable stands above `with strategy.scope():`.
#
# ```text
# running mean after two steps on two devices 1.94, on one device 1.52
# ```
#
# *Silent. Strategy and device count matter, Keras does not. From the `TPUStrategy` reference, document 003.*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm23",
    slug="variable_outside_scope",
    title="A variable made outside the scope takes the update of every replica",
    sees="a count or a running mean that replicas write is wrong, by more with every device",
    fix="make the variable in `strategy.scope()`, with an `aggregation` if replicas write to it",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"the running mean is that of one device",
            strategies=("mirrored", "central_storage", "multi_worker", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
        ),
    ),
    claims=(
        Claim("003-C26", "variables in the scope are replicated, outside it they are not", "true"),
        Claim("003-C27", "`run` and `reduce` enter the scope themselves", "true"),
        Claim("003-C29", "calling `model(x)` does not enter the scope", "true"),
        Claim("003-C30", "variables of the scope are read and written outside it", "true"),
    ),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm23", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You put the model into the scope, because the model has to be on every device. A running mean of the features is only a
# variable, so you make it where the script makes its other variables. Each replica moves the mean towards its part of the
# batch. You expect the mean of these updates, as `aggregation` says.

# %%
from contextlib import nullcontext

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, checks, experiment, figures

BATCH, STEPS = 16, 2


def examples():
    return np.random.default_rng(0).normal(loc=2.0, size=(BATCH, 3)).astype("float32")


def make_mean():
    return tf.Variable(tf.zeros(3), aggregation=tf.VariableAggregation.MEAN, name="mean")


def trained(strategy, mean):
    """The mean after two steps: in each it moves halfway towards what a replica sees."""

    def step():
        context = tf.distribute.get_replica_context()
        each = BATCH // context.num_replicas_in_sync
        mine = tf.slice(examples(), [context.replica_id_in_sync_group * each, 0], [each, 3])
        mean.assign_add(0.5 * (tf.reduce_mean(mine, axis=0) - mean.read_value()))

    @tf.function
    def train_step():
        strategy.run(step)

    for _ in range(STEPS):
        train_step()
    return mean.numpy()


def expected():
    """What one device makes of the same batches."""
    mean = np.zeros(3)
    for _ in range(STEPS):
        mean += 0.5 * (np.mean(examples(), axis=0) - mean)
    return mean


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    mean = make_mean()  # guilty: no scope around it
    got = trained(strategy, mean)
    return Proof("the running mean is that of one device", [got], [expected()], 1e-5)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# While [`strategy.scope()`](https://www.tensorflow.org/api_docs/python/tf/distribute/Strategy#scope) is open, the strategy
# creates every new variable. `MirroredStrategy` gives it one copy per device. When replicas write to such a variable, the
# strategy combines their values by its `aggregation`, here the mean, and writes the result once.
#
# A variable made outside the scope is an ordinary `tf.Variable`. It has one copy, and its `aggregation` is ignored. Each of n
# replicas writes to it, one after the other, so it takes n updates per step. Nothing is raised, because each assignment is
# valid. With several processes, each process has a variable of its own, and the values differ.
#
# The picture shows the running mean after two steps.

# %%
two = session.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=count) for count in (1, 2, 4)]


def ended(place, inside):
    """The first feature of the running mean after two steps."""
    strategy = build_strategy(place)
    with strategy.scope() if inside else nullcontext():
        mean = make_mean()
    return float(trained(strategy, mean)[0])


WAYS = {"made outside the scope": False, "made in the scope": True}
FOUND = {way: [ended(place, inside) for place in PLACES] for way, inside in WAYS.items()}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
RIGHT = [float(expected()[0])] * len(PLACES)
figures.numbers(FOUND, COLUMNS, RIGHT, "A running mean after two steps")

# %% [markdown]
# ## The fix
#
# Make the variable in the scope, and say with `aggregation` how the replicas' values are combined. Before:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# mean = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
#
# def step():
#     mean.assign_add(0.5 * (2.0 - mean))
#
# strategy.run(step)
# print(mean.numpy())  # 1.5
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# strategy = tf.distribute.MirroredStrategy()
# with strategy.scope():
#     mean = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
#
# def step():
#     mean.assign_add(0.5 * (2.0 - mean))
#
# strategy.run(step)
# print(mean.numpy())  # 1.0
# ```
#
# `checks.assert_scope_of_writers(strategy, variables)`, called before the training loop, raises if one of the variables was
# made outside the scope. After `from strategy_clinic import pasted`, `print(pasted(checks.assert_scope_of_writers))` prints
# it with all that it needs.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():  # repair
        mean = make_mean()
    checks.assert_scope_of_writers(strategy, [mean])
    got = trained(strategy, mean)
    return Proof("the running mean is that of one device", [got], [expected()], 1e-5)


session.proves(fixed)

# %%
SETUPS = [PLACES[0], two, two.but(keras=session.setup.other_keras)]
SETUPS += [two.but(strategy="central_storage"), two.but(strategy="tpu_traced", devices=8)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Choose one device: it does not matter where the variable was made. Then choose `multi_worker`: each of the two processes has
# its own variable, and averages its own half of the batch.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The `TPUStrategy` reference, document 003, warns:
#
# > Any variable that is created outside scope will not be distributed and may have performance implications.
#
# The run agrees that it is not distributed. The reference speaks of performance only; here the value is wrong as well. It also
# says:
#
# > Simply calling model(..) does not automatically enter the captured scope
#
# The run agrees, and that is a second way into the failure. A model without an input shape makes its weights when it is first
# called. Called outside the scope, it makes them outside. Whether `fit` enters the scope is judged in
# [fm25](fm25_load_outside_scope.ipynb). Two other rules hold: `run` and `reduce` enter the scope themselves, and a variable of
# the scope can be read and written outside it.

# %% tags=["claims"]
replicas = build_strategy(two)


def knows(weight):
    return replicas.extended.variable_created_in_scope(checks.variable_of(weight))


def unbuilt():
    with replicas.scope():
        return tf.keras.Sequential([tf.keras.layers.Dense(1)])


with replicas.scope():
    inside = make_mean()
outside, called, in_run = make_mean(), unbuilt(), unbuilt()
called(examples())
replicas.run(lambda: in_run(examples()))
inside.assign([1.0, 2.0, 3.0])
total = replicas.reduce("SUM", replicas.run(lambda: tf.ones(())), axis=None)
session.judges(
    {
        "003-C26": [len(figures.copies(inside)) == 2, len(figures.copies(outside)) == 1],
        "003-C27": [*map(knows, in_run.variables), total == 2.0],
        "003-C29": [not knows(weight) for weight in called.variables],
        "003-C30": [np.array_equal(each, [1, 2, 3]) for each in figures.values_of(inside)],
    },
)

# %% [markdown]
# ## Exercise
#
# This counter drives a learning rate schedule. On two replicas it says 6 after three steps, so the learning rate falls too
# early. Change where the counter is made.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    count = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)

    @tf.function
    def train_step():
        strategy.run(lambda: count.assign_add(1.0))

    for _ in range(3):
        train_step()
    return Proof("the counter has counted three steps", [count.numpy()], [3.0])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        count = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)

    @tf.function
    def train_step():
        strategy.run(lambda: count.assign_add(1.0))

    for _ in range(3):
        train_step()
    return Proof("the counter has counted three steps", [count.numpy()], [3.0])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm38 replica_state_diverges](fm38_replica_state_diverges.ipynb): a variable in the scope, and no aggregation.
# - [fm25 load_outside_scope](fm25_load_outside_scope.ipynb): the same mistake where a model is loaded.
# - [fm03 scope_mismatch](fm03_scope_mismatch.ipynb): the model outside the scope, the optimizer inside.
