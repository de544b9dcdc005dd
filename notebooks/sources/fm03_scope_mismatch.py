# %% [markdown]
# # FM03. Variables made in different scopes do not train together
#
# Model and optimizer are fine, each on its own, and together they die on `colocate_vars_with`, on a bare `AssertionError`, or on
# "mixing different strategies", though the script has only one.
#
# ```text
# Keras 3  ValueError: `colocate_vars_with` must only be passed a variable created in this tf.distribute.Strategy.scope(), not: <tf.Variable 'sequential_46/dense_46/kernel:0' shape=(1, 1) dtype=float32, numpy=array([[1.]], dtype=float32)>
# Keras 2  ValueError: `colocate_vars_with` must only be passed a variable created in this tf.distribute.Strategy.scope(), not: <tf.Variable 'dense_46/kernel:0' shape=(1, 1) dtype=float32, numpy=array([[1.]], dtype=float32)>
# ```
#
# *Loud, and silent in the exercise. Every strategy has it, and no script without one. From document 000.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm03",
    slug="scope_mismatch",
    title="Variables made in different scopes do not train together",
    sees="a model made before the scope and an optimizer made in it raise on `colocate_vars_with`",
    fix="make the model, its optimizer and its metrics in the scope of one and the same strategy",
    document="000",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "ValueError",
            r"`colocate_vars_with` must only be passed a variable created in this tf\.distribute\.Strategy\.scope\(\)",
            strategies=(
                "one_device",
                "mirrored",
                "central_storage",
                "multi_worker",
                "parameter_server",
                "tpu_traced",
                "tpu",
            ),
        ),
    ),
    claims=(
        Claim("000-C6", "a model and an optimizer made outside the scope train in it", "false"),
        Claim("003-C31", "optimizers and metrics belong in the scope", {2: "true", 3: "half"}),
    ),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm03", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The model comes from a function, or from another module, and is there before you think of devices. The training is what you want
# to distribute, so the scope begins where the training begins: with the optimizer.

# %%
import contextlib

import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures, observe

STEPS, BATCH = 3, [[1.0], [2.0]]


def make_model():
    layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
    return tf.keras.Sequential(layers)


def make_optimizer(model):
    optimizer = tf.keras.optimizers.Adam(0.1)
    optimizer.build(model.trainable_variables)
    return optimizer


def train(strategy, model, optimizer):
    """Some steps, with the loss divided by the replicas, since their gradients are added."""

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(tf.constant(BATCH))))
            loss /= strategy.num_replicas_in_sync
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    for _ in range(STEPS):
        strategy.run(step)


def proof(strategy, model, optimizer):
    """Every copy of every weight, and the count of steps, against the same training without a strategy."""
    alone = make_model()
    train(tf.distribute.get_strategy(), alone, make_optimizer(alone))
    weights = [checks.variable_of(weight) for weight in model.trainable_variables]
    copies = [strategy.experimental_local_results(weight) for weight in weights]
    got = [copy for each in copies for copy in each]
    want = [weight for weight, each in zip(alone.get_weights(), copies) for _ in each]
    return Proof(
        "every copy of every weight and the count of steps are those of one device",
        [*got, optimizer.iterations.numpy()],
        [*want, STEPS],
    )


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    model = make_model()  # guilty: made before the scope is open
    observe(model=model.variables)
    with strategy.scope():
        optimizer = make_optimizer(model)
    train(strategy, model, optimizer)
    return proof(strategy, model, optimizer)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# A scope is no place where things happen. It is a mark that a variable gets when it is made, and keeps. Adam wants two variables
# of its own beside each weight, on the same devices, so it asks the strategy to place them there, and the strategy does not know
# a weight that it has not made. What is said depends on who notices first: the slots, the counter of steps or the gradients.
#
# The other way round nobody notices. An optimizer made outside keeps one counter and one pair of slots per weight, and every
# replica works on them: two replicas, and each step counts twice.
#
# The picture is made by training all four combinations. See
# [`colocate_vars_with`](https://www.tensorflow.org/api_docs/python/tf/distribute/StrategyExtended#colocate_vars_with).

# %%
two = clinic.setup.but(strategy="mirrored", devices=2)


def outcome(setup, model_in_scope, optimizer_in_scope):
    """Does training run, and does it give the values that one device gives?"""
    strategy = build_strategy(setup)
    try:
        with strategy.scope() if model_in_scope else contextlib.nullcontext():
            model = make_model()
        with strategy.scope() if optimizer_in_scope else contextlib.nullcontext():
            optimizer = make_optimizer(model)
        train(strategy, model, optimizer)
    except (ValueError, RuntimeError, AssertionError):
        return [False, False]
    return [True, proof(strategy, model, optimizer).holds]


OUTCOMES = {
    "both in the scope": outcome(two, True, True),
    "optimizer outside": outcome(two, True, False),
    "model outside": outcome(two, False, True),
    "both outside": outcome(two, False, False),
}
COLUMNS = ["trains", "right values"]
figures.grid(OUTCOMES, COLUMNS, "yes", "no", "What was made where?")

# %% [markdown]
# ## The fix
#
# Open the scope before the first variable. The scope may be opened as often as you like; what counts is that it belongs to one
# and the same strategy object each time. A second `MirroredStrategy()` of the same devices is another strategy.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():  # repair
        model = make_model()
    with strategy.scope():
        optimizer = make_optimizer(model)
    train(strategy, model, optimizer)
    return proof(strategy, model, optimizer)


clinic.proves(fixed)

# %%
alone = two.but(strategy="default", devices=1)
SETUPS = [two, two.but(devices=1), alone, alone.but(strategy="one_device")]
SETUPS += [two.but(strategy="central_storage"), two.but(keras=clinic.setup.other_keras)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Only `default` makes the failure go away, since without a strategy all variables are of one kind. One device is not enough: a
# strategy knows what it has made, even where there is nothing to copy.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# All three examples of document 000 make model and optimizer first and open the scope around the loop. None of them trains. The
# rule in document 003 is right about optimizers. About metrics, Keras 2 enforces it; Keras 3 takes a metric from outside, and as
# long as all replicas live in one process, it counts right.


# %% tags=["claims"]
def examples_train(setup):
    """The document's order of things, with the optimizer built at its first step, eagerly, and built before."""
    strategy, model = build_strategy(setup), make_model()
    optimizer = tf.keras.optimizers.Adam(0.1)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(tf.constant(BATCH))))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    try:
        with strategy.scope():
            strategy.run(step)
        lazily = True
    except (ValueError, RuntimeError, AssertionError):
        lazily = False
    return [lazily, outcome(setup, False, False)[0]]


def metric_from_outside_counts(setup):
    """A metric made outside, given to a model made in scope: is it taken, and does it count all replicas?"""
    strategy, metric = build_strategy(setup), tf.keras.metrics.Mean()
    try:
        with strategy.scope():
            model = make_model()
            model.compile("sgd", tf.keras.losses.MeanSquaredError(), metrics=[metric])
    except ValueError:
        return False

    def update():
        metric.update_state(tf.constant([1.0, 2.0, 6.0]))

    strategy.run(tf.function(update))
    count = metric.variables[1].numpy()
    return bool(count == 3 * strategy.num_replicas_in_sync)


clinic.judges(
    {
        "000-C6": examples_train(two) + examples_train(two.but(devices=1)),
        "003-C31": [
            not outcome(two, True, False)[1],
            outcome(two, True, True)[1],
            not metric_from_outside_counts(two),
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# This script makes its model in the scope, trains, and says nothing. Its weights are wrong all the same. Move one line.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
    optimizer = make_optimizer(model)
    train(strategy, model, optimizer)
    return proof(strategy, model, optimizer)


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
        optimizer = make_optimizer(model)
    train(strategy, model, optimizer)
    return proof(strategy, model, optimizer)


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm25 load_outside_scope](fm25_load_outside_scope.ipynb): a model outside the scope that nobody trains, so that nobody says a
#   word.
# - [fm31 replica_call_in_cross_replica](fm31_replica_call_in_cross_replica.ipynb): everything made in the scope, and the step
#   run there too.
