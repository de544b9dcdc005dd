# %% [markdown]
# # FM23. A variable made outside the scope takes the update of every replica
#
# A running mean that was right on one device drifts as soon as there are two, and further with every device that is added. The
# line that makes it stands one line above the scope.
#
# *Silent. Strategy and device count matter, Keras does not. From document 003.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

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
            r"\d+ replicas write to \w+, which was made outside their scope",
            strategies=("mirrored", "central_storage", "multi_worker", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
        ),
    ),
    claims=(
        Claim("003-C26", "variables in the scope are replicated, outside it they are not", "true"),
        Claim("003-C27", "`run` and `reduce` enter the scope themselves", "true"),
        Claim("003-C28", "a Keras model remembers its scope", "true"),
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
import helpers

clinic = helpers.open("fm23", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The scope, you think, is for the model: the model is what has to be on every device. The running mean next to it is just a
# variable, so you make it where you make the other variables of the script.

# %%
import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures, runner

BATCH, STEPS = 16, 2


def examples():
    return np.random.default_rng(0).normal(loc=2.0, size=(BATCH, 3)).astype("float32")


def make_mean():
    return tf.Variable(tf.zeros(3), aggregation=tf.VariableAggregation.MEAN, name="mean")


def step_for(mean):
    """The step of one replica: the mean moves halfway towards what the replica sees."""

    def step():
        context = tf.distribute.get_replica_context()
        each = BATCH // context.num_replicas_in_sync
        mine = tf.slice(examples(), [context.replica_id_in_sync_group * each, 0], [each, 3])
        mean.assign_add(0.5 * (tf.reduce_mean(mine, axis=0) - mean.read_value()))

    return step


def run(strategy, mean):
    step = step_for(mean)
    for _ in range(STEPS):
        runner(strategy)(step)
    return mean.numpy()


def expected():
    """What one device makes of the same batches."""
    return run(tf.distribute.get_strategy(), make_mean())


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    mean = make_mean()  # guilty: no scope around it
    checks.assert_scope_of_writers(strategy, [mean])
    return Proof("the running mean is that of one device", [run(strategy, mean)], [expected()])


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# The scope catches every variable that is made while it is open, and gives it a copy for each device and a rule for what becomes
# of the replicas' updates: their mean, their sum. A variable made outside has neither. It is one ordinary variable, and a step on
# n replicas writes to it n times, one replica after the other, each with its part of the batch. TensorFlow sees n correct
# assignments. With several processes each even has a variable of its own.
#
# The picture shows where a running mean is after two steps, made outside the scope and in it. See
# [`Strategy.scope`](https://www.tensorflow.org/api_docs/python/tf/distribute/Strategy#scope).

# %%
two = clinic.setup.but(strategy="mirrored", devices=2)
PLACES = [two.but(devices=count) for count in (1, 2, 4)]


def ended(place, inside):
    """The first feature of the running mean after two steps."""
    strategy = build_strategy(place)
    with strategy.scope() if inside else tf.distribute.get_strategy().scope():
        mean = make_mean()
    return float(run(strategy, mean)[0])


WAYS = {"made outside the scope": False, "made in the scope": True}
FOUND = {way: [ended(place, inside) for place in PLACES] for way, inside in WAYS.items()}
COLUMNS = [f"mirrored x{place.devices}" for place in PLACES]
RIGHT = [float(expected()[0])] * len(PLACES)
figures.numbers(FOUND, COLUMNS, RIGHT, "A running mean after two steps")

# %% [markdown]
# ## The fix
#
# Make it in the scope, and say with `aggregation` what becomes of the values of several replicas. The check
# `checks.assert_scope_of_writers(strategy, variables)` can stand in front of the training loop.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():  # repair
        mean = make_mean()
    checks.assert_scope_of_writers(strategy, [mean])
    return Proof("the running mean is that of one device", [run(strategy, mean)], [expected()])


clinic.proves(fixed)

# %%
SETUPS = [*PLACES, two.but(keras=clinic.setup.other_keras), two.but(strategy="central_storage")]
SETUPS += [two.but(strategy="multi_worker"), two.but(strategy="tpu_traced", devices=8)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# One device, and it does not matter where the variable was made. A parameter server is spared: its workers do not step together.
# The check speaks before the first step, so the row of the TPU says what its scope knows of the variable; what a real one makes
# of writes to a variable that it does not own, no emulation can tell.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# The reference, document 003, is right on all five counts, and the fourth is the trap: a model without an input shape makes its
# weights when it is first called. Called outside the scope, it makes them there, wherever the model itself was made.

# %% tags=["claims"]
replicas = build_strategy(two)


def knows(weight):
    return replicas.extended.variable_created_in_scope(checks.variable_of(weight))


def unbuilt():
    with replicas.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile(optimizer="sgd", loss=tf.keras.losses.MeanSquaredError())
    return model


with replicas.scope():
    inside = make_mean()
outside = make_mean()
called, in_run, fitted = unbuilt(), unbuilt(), unbuilt()
called(examples())
replicas.run(lambda: in_run(examples()))
fitted.fit(examples(), np.ones((BATCH, 1), "float32"), batch_size=BATCH, verbose=0)
inside.assign([1.0, 2.0, 3.0])
total = replicas.reduce("SUM", replicas.run(lambda: tf.ones(())), axis=None)
clinic.judges(
    {
        "003-C26": [len(figures.copies(inside)) == 2, len(figures.copies(outside)) == 1],
        "003-C27": [*map(knows, in_run.variables), total == 2.0],
        "003-C28": [
            *map(knows, fitted.variables),
            fitted.predict(examples(), verbose=0).size == 16,
        ],
        "003-C29": [not knows(weight) for weight in called.variables],
        "003-C30": [np.array_equal(each, [1, 2, 3]) for each in figures.values_of(inside)],
    },
)

# %% [markdown]
# ## Exercise
#
# This model is made in the scope, and still lives on one device. Move one line.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model(examples())
    checks.assert_distributed(strategy, model.variables)
    return Proof("the model has its weights", [len(model.variables)], [2])


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model(examples())
    checks.assert_distributed(strategy, model.variables)
    return Proof("the model has its weights", [len(model.variables)], [2])


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm38 replica_state_diverges](fm38_replica_state_diverges.ipynb): a variable in the scope, and no aggregation.
# - [fm25 load_outside_scope](fm25_load_outside_scope.ipynb): the same slip where a model is loaded.
# - [fm03 scope_mismatch](fm03_scope_mismatch.ipynb): the model outside, the optimizer inside, and an error at last.
