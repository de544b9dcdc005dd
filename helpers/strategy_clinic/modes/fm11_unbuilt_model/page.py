# %% [markdown]
# # FM11. A model that has not been called has no weights to accumulate for
#
# You make one accumulator for each trainable variable, right after the model. On Keras 3 the first update raises the error below.
# On Keras 2 training runs to its end, and the model is what it was.
#
# ```text
# Keras 3  ValueError: not enough values to unpack (expected 2, got 0)
# ```
#
# *Loud on Keras 3, silent on Keras 2, under every strategy. Switches: `keras`, `strategy`. From document 002, "How can
# inconsistent trainable variables be addressed when accumulating gradients in TensorFlow?"*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm11",
    slug="unbuilt_model",
    title="A model that has not been called has no weights to accumulate for",
    sees="`not enough values to unpack (expected 2, got 0)`, or a training that changes nothing",
    fix="call the model once, or give it an `Input`, before anything asks for its variables",
    document="002",
    switches=("keras", "strategy"),
    symptoms=(
        Symptom("ValueError", r"not enough values to unpack \(expected 2, got 0\)", keras=(3,)),
        Symptom("SilentFailure", r"one update from all batches has been made", keras=(2,)),
    ),
    claims=(
        Claim("002-C2", "its first example accumulates gradients correctly", "false"),
        Claim(
            "002-C8",
            "using `model.trainable_variables` throughout guarantees consistency",
            "half",
        ),
    ),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm11", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The model exists, so you ask it what it will train, and make a zero for each variable. You believe that its weights were made
# with its layers: you did say how many units each layer has.

# %%
import warnings

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, checks, experiment, figures

RATE, BATCHES = 0.1, 3


class Model(tf.keras.Model):
    """Every kernel starts at 0.5, so that two models can be compared."""

    def __init__(self):
        super().__init__(name="model")
        start = tf.keras.initializers.Constant(0.5)
        self.hidden = tf.keras.layers.Dense(4, activation="tanh", kernel_initializer=start)
        self.last = tf.keras.layers.Dense(1, kernel_initializer=start)

    def call(self, inputs):
        return self.last(self.hidden(inputs))


def batch(number):
    return np.random.default_rng(number).normal(size=(4, 3)).astype("float32")


def zeros(model):
    """One accumulator for each trainable variable."""
    return [tf.zeros(variable.shape) for variable in model.trainable_variables]


def gradients_of(model, data, share=1.0):
    """Of a mean squared error; `share` is the part of it that this call is to count for."""
    with tf.GradientTape() as tape:
        loss = share * tf.reduce_mean(tf.square(model(data) - 1.0))
    return tape.gradient(loss, model.trainable_variables)


def train(strategy, model, totals):
    """One update from several batches."""
    share = 1.0 / (BATCHES * strategy.num_replicas_in_sync)
    with strategy.scope():
        optimizer = tf.keras.optimizers.SGD(RATE)

    def accumulate(totals):
        for number in range(BATCHES):
            gradients = gradients_of(model, batch(number), share)
            totals = [total + gradient for total, gradient in zip(totals, gradients)]
        optimizer.apply_gradients(zip(totals, model.trainable_variables))

    @tf.function
    def train_step():
        strategy.run(accumulate, args=(totals,))

    train_step()


def large_batch():
    """The weights after one update from all batches at once."""
    model = Model()
    gradients = gradients_of(model, np.concatenate([batch(n) for n in range(BATCHES)]))
    return [weight - RATE * gradient for weight, gradient in zip(model.get_weights(), gradients)]


def proof(model):
    what = "one update from all batches has been made"
    return Proof(what, model.get_weights(), large_batch(), tolerance=1e-5)


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = Model()
        totals = zeros(model)  # guilty: there are no variables yet
    train(strategy, model, totals)
    return proof(model)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# A `Dense` layer knows how many units it has. It learns how many inputs it has from the first data that it sees, and makes its
# kernel then. Before that `trainable_variables` is an empty list, and a list of zeros made from it is empty too. The first batch
# builds the model, but does not change the list of zeros.
#
# `zip` stops at the shorter list, so no gradient is added. `apply_gradients` of Keras 2 accepts an empty update; that of Keras 3
# fails to unpack it.
#
# The picture asks for the variables at three moments. `build` of Keras 3 makes no weights for a subclass: it marks the model as
# built and warns. See
# [the guide to Sequential](https://www.tensorflow.org/guide/keras/sequential_model#specifying_the_input_shape_in_advance).


# %%
def chain():
    return tf.keras.Sequential(
        [tf.keras.layers.Dense(4, activation="tanh"), tf.keras.layers.Dense(1)]
    )


def has_weights(model):
    try:
        return len(model.trainable_variables) > 0
    except ValueError:  # Keras 2 refuses to answer for a Sequential without weights
        return False


def moments(make):
    new, built, called = make(), make(), make()
    with warnings.catch_warnings(action="ignore"):  # the picture says the same
        built.build((None, 3))
    called(batch(0))
    return [has_weights(new), has_weights(built), has_weights(called)]


MOMENTS = {"Sequential": moments(chain), "subclass of Model": moments(Model)}
COLUMNS = ["just made", "after build", "after a call"]
figures.grid(MOMENTS, COLUMNS, "weights", "none", "When does a model have weights?")

# %% [markdown]
# ## The fix
#
# Let the model see data first: call it once, or begin a `Sequential` with `tf.keras.Input`. Before:
#
# ```python
# import tensorflow as tf
#
# model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
# totals = [tf.zeros(weight.shape) for weight in model.trainable_variables]
# with tf.GradientTape() as tape:
#     loss = tf.reduce_sum(model(tf.ones((1, 1))))
# gradients = tape.gradient(loss, model.trainable_variables)
# totals = [total + gradient for total, gradient in zip(totals, gradients)]
# pairs = zip(totals, model.trainable_variables)
# tf.keras.optimizers.SGD(0.25).apply_gradients(pairs)  # ValueError: not enough values to unpack (expected 2, got 0)
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")]
# model = tf.keras.Sequential(layers)
# totals = [tf.zeros(weight.shape) for weight in model.trainable_variables]
# with tf.GradientTape() as tape:
#     loss = tf.reduce_sum(model(tf.ones((1, 1))))
# gradients = tape.gradient(loss, model.trainable_variables)
# totals = [total + gradient for total, gradient in zip(totals, gradients)]
# tf.keras.optimizers.SGD(0.25).apply_gradients(zip(totals, model.trainable_variables))
# print(model.get_weights()[0])  # [[0.75]]
# ```
#
# `checks.assert_gradients_fit(totals, model.trainable_variables)`, right before an update, raises where `zip` only stops.
# `print(pasted(checks.assert_gradients_fit))`, after `from strategy_clinic import pasted`, prints it with all that it needs.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = Model()
        model(batch(0))  # repair: the first call makes the weights
        totals = zeros(model)
    checks.assert_gradients_fit(totals, model.trainable_variables)
    train(strategy, model, totals)
    return proof(model)


session.proves(fixed)

# %%
alone = session.setup.but(strategy="default", devices=1)
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [alone, two, two.but(strategy="central_storage")]
SETUPS += [alone.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch Keras: with Keras 2 nothing is raised, and the model has not learned. The strategy makes no difference, because the
# list is empty before any replica runs.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# Document 002, "How can inconsistent trainable variables be addressed when accumulating gradients in TensorFlow?", prints a loop
# like the one above and says:
#
# > This example demonstrates the correct way to accumulate gradients, ensuring consistency through consistent variable access
#
# > Here, the `model.trainable_variables` consistently provides the same list of variables throughout the accumulation loop.
#
# Run as printed, the example fails: its model is not built when the sums are made. The list is the same from the first call on.


# %% tags=["claims"]
def first_example_runs():
    """The document's first example, as printed there."""
    data = np.random.default_rng(0).normal(size=(10, 4, 3)).astype("float32")
    model = tf.keras.models.Sequential(
        [tf.keras.layers.Dense(10, activation="relu"), tf.keras.layers.Dense(1)]
    )
    optimizer = tf.keras.optimizers.SGD(learning_rate=0.01)
    try:
        accumulated_gradients = [tf.zeros_like(var) for var in model.trainable_variables]
        for each in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(each))
            batch_gradients = tape.gradient(loss, model.trainable_variables)
            for i, grad in enumerate(batch_gradients):
                accumulated_gradients[i] += grad
        optimizer.apply_gradients(zip(accumulated_gradients, model.trainable_variables))
    except (IndexError, ValueError):  # Keras 3: list index out of range; Keras 2: no weights yet
        return False
    return True


def list_stays_the_same(model):
    """Is the list of variables after a call the one from before it?"""
    before = [id(variable) for variable in model.trainable_variables]
    model(batch(0))
    return before == [id(variable) for variable in model.trainable_variables]


called = Model()
called(batch(0))
session.judges(
    {
        "002-C2": [first_example_runs()],
        "002-C8": [list_stays_the_same(called), list_stays_the_same(Model())],
    },
)

# %% [markdown]
# ## Exercise
#
# The same mistake without any gradient: yesterday's weights are put into a model that has just been made, and it refuses
# them. Make it take them.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    yesterday = Model()
    before = yesterday(batch(0))
    today = Model()
    today.set_weights(yesterday.get_weights())
    return Proof("the new model predicts what the old one did", [today(batch(0))], [before])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    yesterday = Model()
    before = yesterday(batch(0))
    today = Model()
    today(batch(1))
    today.set_weights(yesterday.get_weights())
    return Proof("the new model predicts what the old one did", [today(batch(0))], [before])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm35 restore_before_build](fm35_restore_before_build.ipynb): what an unbuilt model does to a restore.
# - [fm32 optimizer_built_in_replica](fm32_optimizer_built_in_replica.ipynb): what an unbuilt optimizer does to a traced step.
# - [fm12 variables_recreated](fm12_variables_recreated.ipynb): variables that are made again and again.
# - [fm13 gradients_inconsistent](fm13_gradients_inconsistent.ipynb): a list of gradients that is cut short later on.
