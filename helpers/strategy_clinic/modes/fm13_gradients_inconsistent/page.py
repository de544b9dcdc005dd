# %% [markdown]
# # FM13. A batch that skips a layer has no gradient to add for it
#
# Two tasks take turns, each with a head of its own, and gradients are added up over the turns. The sum fails over a `None`.
# To leave out each `None` raises nothing, and trains one head on the gradients of the other.
#
# ```text
# ValueError: None values not supported.
# ```
#
# *Loud, under every strategy and both Keras generations; leaving out each `None` is silent. Switches: `strategy`, `keras`.
# From document 002, "How can inconsistent trainable variables be addressed when accumulating gradients in TensorFlow?"*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

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
import strategy_clinic as clinic

session = clinic.open("fm13", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You ask the tape for the gradients of all variables, so you expect as many gradients, in the same order, from every batch. You
# believe that a head that had nothing to do in this batch has a gradient of zero.

# %%
import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, checks, experiment, figures

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

    @tf.function
    def train_step():
        strategy.run(accumulate)

    before = model.get_weights()
    train_step()
    return before, model.get_weights()


# %%
@experiment
def broken(setup):
    def gradients_of(tape, loss, variables):
        return tape.gradient(loss, variables)  # guilty: None for the head that was not called

    train(setup, gradients_of)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# The tape records operations and applies the chain rule from the loss back to the variables. From the loss of the first task no
# path leads to the second head. The gradient is then `None`, which means "not connected". An optimizer skips a variable whose
# gradient is `None`. A sum raises.
#
# The `None` keeps the place of its variable in the list. If you leave it out, the list is shorter, and `zip` pairs the gradients
# of the second head with the sums of the first. If the shapes are equal, or broadcast, nothing is raised.
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
# Put zeros where a gradient is `None`, and keep its place. Before:
#
# ```python
# import tensorflow as tf
#
# first, second = tf.Variable(1.0), tf.Variable(1.0)
# totals = [tf.constant(0.0), tf.constant(0.0)]
# for head in (first, second):
#     with tf.GradientTape() as tape:
#         loss = 3.0 * head
#     gradients = tape.gradient(loss, [first, second])
#     totals = [total + each for total, each in zip(totals, gradients)]  # ValueError: Attempt to convert a value (None)
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# first, second = tf.Variable(1.0), tf.Variable(1.0)
# totals, zero = [tf.constant(0.0), tf.constant(0.0)], tf.UnconnectedGradients.ZERO
# for head in (first, second):
#     with tf.GradientTape() as tape:
#         loss = 3.0 * head
#     gradients = tape.gradient(loss, [first, second], unconnected_gradients=zero)
#     totals = [total + each for total, each in zip(totals, gradients)]
# print([float(total) for total in totals])  # [3.0, 3.0]
# ```
#
# The argument needs a list of `tf.Variable`. On Keras 3 it is `[weight.value for weight in model.trainable_variables]`. The
# function `filled`, below, makes the zeros by hand and works with both generations.
#
# `checks.assert_gradients_fit(gradients, variables)` raises for a `None`, a missing gradient or a wrong shape.
# `print(pasted(checks.assert_gradients_fit))`, after `from strategy_clinic import pasted`, prints it with all that it needs.


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


session.proves(fixed)

# %%
alone = session.setup.but(strategy="default", devices=1)
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [alone, two, two.but(strategy="central_storage")]
SETUPS += [two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch the strategy: the outcome stays the same. Each replica has a tape of its own, and the `None` is there before any
# gradient is reduced over replicas.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# Document 002, "How can inconsistent trainable variables be addressed when accumulating gradients in TensorFlow?":
#
# > If the structure of the model changes dynamically … the variables involved in gradient calculation will change, resulting in
# > inconsistent accumulated gradients. The `tf.GradientTape` will only track the variables present during each individual forward
# > pass.
#
# Both sentences hold. The document's example makes new variables in every batch, and fails at the first product. With data that
# fits, it fails at the sum; with weights of one shape, at the optimizer.


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


session.judges(
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
# A penalty on the kernels joins the training. Its gradients are added to those of the loss, and the sum fails: a bias is not in
# the penalty. Make the sums what the gradients of loss and penalty together are.


# %% tags=["exercise"]
def penalised(sums_of):
    """The gradients of a loss and of a penalty, added up, and beside them the gradients of the whole."""
    model = make_model()
    variables = model.trainable_variables
    with tf.GradientTape(persistent=True) as tape:
        loss = loss_of(model, 0) + loss_of(model, 1)
        kernels = [model.body.kernel, model.first.kernel, model.second.kernel]
        penalty = tf.add_n([0.1 * tf.reduce_sum(tf.square(kernel)) for kernel in kernels])
        whole = loss + penalty
    sums = sums_of(tape.gradient(loss, variables), tape.gradient(penalty, variables), variables)
    return Proof("the sums are the gradients of the whole", sums, tape.gradient(whole, variables))


@experiment
def attempt(setup):
    def sums_of(of_loss, of_penalty, variables):
        return [a + b for a, b in zip(of_loss, of_penalty)]

    return penalised(sums_of)


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    def sums_of(of_loss, of_penalty, variables):
        return [a + b for a, b in zip(of_loss, filled(of_penalty, variables))]

    return penalised(sums_of)


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm11 unbuilt_model](fm11_unbuilt_model.ipynb): a list of sums that is too short from the start.
# - [fm12 variables_recreated](fm12_variables_recreated.ipynb): variables that a condition has made anew.
# - [fm14 weights_not_shared](fm14_weights_not_shared.ipynb): gradients that are all there, for one variable too many.
# - [fm34 no_gradients](fm34_no_gradients.ipynb): `None` for every variable.
