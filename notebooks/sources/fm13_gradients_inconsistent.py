# %% [markdown]
# # FM13. A batch that skips a layer has no gradient to add for it
#
# Two tasks take turns, each with a head of its own, and gradients are added up over the turns. The sum fails over a None. What
# you think of first to get rid of it runs without an error, and trains one head on the gradients of the other.
#
# ```text
# ValueError: None values not supported.
# ```
#
# *Loud, under every strategy and both Keras generations; the quick way round it is silent. From document 002.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm13",
    slug="gradients_inconsistent",
    title="A batch that skips a layer has no gradient to add for it",
    sees="`None values not supported` when gradients are added up, or sums that belong to other variables",
    fix="put zeros where a gradient is None, and keep its place in the list",
    document="002",
    switches=("strategy", "keras"),
    symptoms=(
        Symptom(
            "ValueError",
            r"None values not supported|Attempt to convert a value \(None\)",
        ),
    ),
    claims=(
        Claim("002-C5", "creating variables by condition makes the accumulation fail", "true"),
        Claim("002-C6", "the tape sees only what took part in that forward pass", "true"),
    ),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm13", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You ask the tape for the gradients of all variables, so you expect as many gradients, in the same order, from every batch. A
# head that had nothing to do in this batch should have a gradient of zero.

# %%
import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures

RATE = 0.1
BATCHES = 4


class TwoTasks(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.body = tf.keras.layers.Dense(4, activation="tanh")
        self.first = tf.keras.layers.Dense(1)
        self.second = tf.keras.layers.Dense(1)

    def build(self, input_shape):
        """Makes all variables at once, also those of a head that no batch has called yet."""
        self.body.build(input_shape)
        self.first.build((None, 4))
        self.second.build((None, 4))
        self.built = True

    def call(self, inputs, task=0):
        head = self.first if task == 0 else self.second
        return head(self.body(inputs))


def make_model():
    model = TwoTasks()
    model.build((None, 3))
    return model


def batch(number):
    return np.random.default_rng(number).normal(size=(4, 3)).astype("float32")


def loss_of(model, number):
    """Even batches belong to the first task, odd ones to the second."""
    return tf.reduce_mean(tf.square(model(batch(number), task=number % 2) - 1.0))


def train(setup, gradients_of):
    """One update from several batches; returns the weights before and after."""
    strategy = build_strategy(setup)
    with strategy.scope():
        model, optimizer = make_model(), tf.keras.optimizers.SGD(RATE)
        optimizer.build(model.trainable_variables)
    share = 1.0 / (BATCHES * strategy.num_replicas_in_sync)

    def accumulate():
        variables = model.trainable_variables
        totals = [tf.zeros(variable.shape) for variable in variables]
        for number in range(BATCHES):
            with tf.GradientTape() as tape:
                loss = share * loss_of(model, number)
            gradients = gradients_of(tape, loss, variables)
            totals = [total + gradient for total, gradient in zip(totals, gradients)]
        optimizer.apply_gradients(zip(totals, variables))

    before = model.get_weights()
    tf.function(lambda: strategy.run(accumulate))()
    return before, model.get_weights()


# %%
@experiment
def broken(setup):
    def gradients_of(tape, loss, variables):
        return tape.gradient(loss, variables)  # guilty: None for the head that was not called

    train(setup, gradients_of)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# The tape writes down what is computed, and walks back along it. From the loss of the first task no path leads to the second
# head, so the answer is None: not a slope of zero, but no connection. Optimizers know this None and skip the variable. A sum
# does not know it.
#
# The None holds a place, though. Throw it out and the list grows shorter: `zip` now pairs the second head's gradients with the
# first head's sums, and if the shapes are equal, or broadcast, nothing stops it.
#
# The picture asks one model for its gradients in four batches. See
# [getting a gradient of None](https://www.tensorflow.org/guide/autodiff#getting_a_gradient_of_none).


# %%
def connected(model, number):
    """For each layer, whether this batch's loss has a gradient for it."""
    with tf.GradientTape() as tape:
        loss = loss_of(model, number)
    layers = [model.body, model.first, model.second]
    found = tape.gradient(loss, [layer.trainable_variables for layer in layers])
    return [all(each is not None for each in of_layer) for of_layer in found]


model = make_model()
CONNECTED = {f"batch {number}": connected(model, number) for number in range(BATCHES)}
COLUMNS = ["body", "first head", "second head"]
figures.grid(CONNECTED, COLUMNS, "gradient", "None", "Which layers does a loss depend on?")

# %% [markdown]
# ## The fix
#
# Put zeros where the tape has nothing to say. Every batch then gives one gradient per variable, in order and shape. In your
# own loop, `checks.assert_gradients_fit(gradients, variables)` raises for a None, a missing gradient or a wrong shape.


# %%
def large_batch(weights):
    """The weights after one update from the losses of all batches at once."""
    model = make_model()
    model.set_weights(weights)
    with tf.GradientTape() as tape:
        loss = tf.add_n([loss_of(model, number) for number in range(BATCHES)]) / BATCHES
    gradients = tape.gradient(loss, model.trainable_variables)
    return [weight - RATE * gradient for weight, gradient in zip(weights, gradients)]


def filled(gradients, variables):
    """The same gradients, with zeros where there is none."""
    pairs = zip(gradients, variables)
    return [tf.zeros(variable.shape) if each is None else each for each, variable in pairs]


@experiment
def fixed(setup):
    def gradients_of(tape, loss, variables):
        return filled(tape.gradient(loss, variables), variables)  # repair

    before, after = train(setup, gradients_of)
    return Proof(
        "the accumulated update is that of one large batch",
        after,
        large_batch(before),
        tolerance=1e-5,
    )


clinic.proves(fixed)

# %%
alone = clinic.setup.but(strategy="default", devices=1)
two = clinic.setup.but(strategy="mirrored", devices=2)
SETUPS = [alone, two, two.but(strategy="central_storage")]
SETUPS += [each.but(keras=clinic.setup.other_keras) for each in (alone, two)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Each replica has a tape of its own, so no strategy helps and none hurts: the None is there before any gradient crosses from
# one device to another.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 002 is right about the tape. Its example makes new variables in every batch and fails in three ways, one after the
# other: as printed, its data does not fit its weights; with data that fits, the sums have two shapes; with one shape, the
# optimizer does not know the new variables. Only shapes that broadcast get past the sum, and what comes out fits nothing.


# %% tags=["claims"]
def third_example(widths, inputs):
    """The document's third example, with weights of these widths and data of these: where does it stop?"""
    data = np.random.default_rng(0).normal(size=(10, 4, 10)).astype("float32")
    optimizer = tf.keras.optimizers.SGD(learning_rate=0.01)
    accumulated_gradients = None
    try:
        for number in range(10):
            w = tf.Variable(tf.random.normal([widths[number % 2], 1]))
            b = tf.Variable(tf.random.normal([1]))
            at = "prediction"
            with tf.GradientTape() as tape:
                y_pred = tf.matmul(data[number][:, : inputs[number % 2]], w) + b
                loss = tf.reduce_mean(y_pred)
            gradients = tape.gradient(loss, [w, b])
            at = "sum"
            if accumulated_gradients is None:
                accumulated_gradients = gradients
            else:
                pairs = zip(accumulated_gradients, gradients)
                accumulated_gradients = [x + y for x, y in pairs]
            at = "update"
            optimizer.apply_gradients(zip(accumulated_gradients, [w, b]))
    except (tf.errors.InvalidArgumentError, ValueError, KeyError):
        return at
    return "nowhere"


def sum_fits(shape, other):
    """Does the sum of two gradients still fit the variable that the second one belongs to?"""
    variable = tf.Variable(tf.zeros(other), name="second")
    try:
        checks.assert_gradients_fit([tf.ones(shape) + tf.ones(other)], [variable])
    except checks.SilentFailure:
        return False
    return True


def refused_by_variable(shape, other):
    """`assign_add`, unlike a sum, does not broadcast."""
    try:
        tf.Variable(tf.zeros(shape)).assign_add(tf.ones(other))
    except (tf.errors.InvalidArgumentError, ValueError):
        return True
    return False


def watched(model, number):
    """The variables that the tape saw during one batch."""
    with tf.GradientTape() as tape:
        loss_of(model, number)
    return {id(variable) for variable in tape.watched_variables()}


def ids(layer):
    return {id(checks.variable_of(weight)) for weight in layer.trainable_variables}


clinic.judges(
    {
        "002-C5": [
            third_example((10, 5), (10, 10)) == "prediction",
            third_example((10, 5), (10, 5)) == "sum",
            third_example((10, 1), (10, 1)) == "update",
            third_example((10, 10), (10, 10)) == "update",
            not sum_fits((10, 1), (1, 1)),
            refused_by_variable((10, 1), (1, 1)),
        ],
        "002-C6": [
            watched(model, 0) == ids(model.body) | ids(model.first),
            watched(model, 1) == ids(model.body) | ids(model.second),
            connected(model, 0) == [True, True, False],
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# Somebody has repaired the loop by throwing the Nones out. It runs, and one head is trained on the other one's gradients.
# Make the accumulated update that of one large batch again. The tape can fill in the zeros itself, if it is told to; on Keras 3
# it can do so only for the `tf.Variable` inside a Keras variable.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    def gradients_of(tape, loss, variables):
        gradients = tape.gradient(loss, variables)
        return [gradient for gradient in gradients if gradient is not None]

    before, after = train(setup, gradients_of)
    return Proof(
        "the accumulated update is that of one large batch",
        after,
        large_batch(before),
        tolerance=1e-5,
    )


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    def gradients_of(tape, loss, variables):
        plain = [checks.variable_of(variable) for variable in variables]
        zero = tf.UnconnectedGradients.ZERO
        return tape.gradient(loss, plain, unconnected_gradients=zero)

    before, after = train(setup, gradients_of)
    return Proof(
        "the accumulated update is that of one large batch",
        after,
        large_batch(before),
        tolerance=1e-5,
    )


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm11 unbuilt_model](fm11_unbuilt_model.ipynb): a list of sums that is too short from the start.
# - [fm12 variables_recreated](fm12_variables_recreated.ipynb): what an optimizer does with variables that a
#   condition has made anew.
# - [fm14 weights_not_shared](fm14_weights_not_shared.ipynb): gradients that are all there, for one variable too many.
