# %% [markdown]
# # FM12. Variables made anew in every batch have nothing to accumulate into
#
# The training step makes the weights that it trains. The second batch finds other weights than the first one left behind,
# under the same name, and something refuses them. If nothing does, training runs to the end and leaves nothing behind.
#
# ```text
# ValueError: tf.function only supports singleton tf.Variables created on the first call. Make sure the tf.Variable is only created once or created outside tf.function. See https://www.tensorflow.org/guide/function#creating_tfvariables for more information.
# ```
#
# *Loud, under every strategy and both Keras generations; silent where the update is written by hand. From document 002.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm12",
    slug="variables_recreated",
    title="Variables made anew in every batch have nothing to accumulate into",
    sees="`tf.function only supports singleton tf.Variables`, or the optimizer meets an unknown variable",
    fix="make the variables once, before the step, and let every batch use the same objects",
    document="002",
    switches=("strategy", "keras"),
    symptoms=(
        Symptom(
            "ValueError",
            r"tf\.function only supports singleton tf\.Variables",
        ),
    ),
    claims=(
        Claim(
            "002-C1",
            "different names make separate variables, and consistent naming prevents it",
            "false",
        ),
        Claim("002-C4", "variables made in the loop prevent accumulation", "true"),
    ),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm12", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You write the step so that it holds all it needs, weights included, and you give them a name. You believe that a variable
# is its name, so that the next batch finds the one that is already there.

# %%
import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, experiment, figures

RATE = 0.1
BATCHES = 3


def batch(number):
    return np.random.default_rng(number).normal(size=(4, 3)).astype("float32")


def new_weights(name="weights"):
    return tf.Variable(tf.zeros((3, 1)), name=name)


def gradient_of(weights, data, share=1.0):
    """The gradient of a mean squared error; `share` is this replica's part of it."""
    with tf.GradientTape() as tape:
        error = tf.matmul(data, tf.convert_to_tensor(weights)) - 1.0
        loss = share * tf.reduce_mean(tf.square(error))
    return tape.gradient(loss, weights)


def train(setup, make, step):
    """Runs a step of the caller's on every batch and returns what `make` made before the first one."""
    strategy = build_strategy(setup)
    with strategy.scope():
        optimizer = tf.keras.optimizers.SGD(RATE)
        made = make()
    share = 1.0 / strategy.num_replicas_in_sync

    @tf.function
    def train_step(data):
        def replica_step():
            step(made, optimizer, data, share)

        strategy.run(replica_step)

    for number in range(BATCHES):
        train_step(tf.constant(batch(number)))
    return made


# %%
@experiment
def broken(setup):
    def step(made, optimizer, data, share):
        weights = new_weights()  # guilty: another object each time that this line runs
        optimizer.apply_gradients([(gradient_of(weights, data, share), weights)])

    train(setup, lambda: None, step)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# A `tf.Variable` is an object that owns memory. Its name is a label, and TensorFlow 2 looks nothing up by it: calling the
# constructor twice makes two variables, and the second starts from its first value.
#
# `tf.function` traces a function that makes variables once more, to see whether it makes them again, and refuses if it does.
# Without it the optimizer is next: it lists the variable objects that it was built with, and the second batch brings one that
# is not in the list. An update written by hand has no list, so it trains each variable for one batch and drops it.
#
# The picture tries all three. See
# [creating variables](https://www.tensorflow.org/guide/function#creating_tfvariables) in TensorFlow's guide.

# %%
alone = clinic.setup.but(strategy="default", devices=1)


def by_function(make):
    """Does `tf.function` accept a step that gets its weights from `make`?"""

    @tf.function
    def step(data):
        weights = make()
        weights.assign_sub(RATE * gradient_of(weights, data))

    try:
        step(tf.constant(batch(0)))
    except ValueError:
        return False
    return True


def by_optimizer(make, optimizer):
    """Does one optimizer take the weights of every batch?"""
    try:
        for number in range(BATCHES):
            weights = make()
            optimizer.apply_gradients([(gradient_of(weights, batch(number)), weights)])
    except (ValueError, KeyError):  # Keras 3 and Keras 2
        return False
    return True


def subtract(weights, gradient):
    weights.assign_sub(RATE * gradient)


def by_hand(make, update=subtract):
    """Is what the last batch leaves behind the work of all batches?"""
    for number in range(BATCHES):
        weights = make()
        update(weights, gradient_of(weights, batch(number)))
    return np.allclose(weights, descended(BATCHES), atol=1e-5)


def descended(batches):
    """The same descent without any variable: what the weights must be after some batches."""
    weights = np.zeros((3, 1), "float32")
    for number in range(batches):
        data = batch(number)
        weights = weights - RATE * 2 * data.T @ (data @ weights - 1.0) / len(data)
    return weights


def numbered():
    """Makes variables whose names count up, as the document's example does."""
    count = iter(range(100))
    return lambda: new_weights(f"weights_{next(count)}")


def kept():
    one = new_weights()
    return lambda: one


ROWS = {
    "one variable": kept,
    "new ones, same name": lambda: new_weights,
    "new ones, new names": numbered,
}
WAYS = {
    name: [
        by_function(make()),
        by_optimizer(make(), tf.keras.optimizers.SGD(RATE)),
        by_hand(make()),
    ]
    for name, make in ROWS.items()
}
COLUMNS = ["tf.function", "optimizer", "by hand"]
figures.grid(WAYS, COLUMNS, "trains", "does not", "Does the name matter?")

# %% [markdown]
# ## The fix
#
# Make the variables once, outside the step, in the scope if there is a strategy. The step uses them through its arguments or
# a closure. In a layer the place is `build` or `__init__`, never `call`.


# %%
@experiment
def fixed(setup):
    def step(made, optimizer, data, share):
        weights = made  # repair
        optimizer.apply_gradients([(gradient_of(weights, data, share), weights)])

    weights = train(setup, new_weights, step)
    return Proof(
        "after all batches the weights are those of the same descent done in NumPy",
        [tf.convert_to_tensor(weights)],
        [descended(BATCHES)],
        tolerance=1e-5,
    )


clinic.proves(fixed)

# %%
two = clinic.setup.but(strategy="mirrored", devices=2)
SETUPS = [alone, two, two.but(strategy="central_storage")]
SETUPS += [each.but(keras=clinic.setup.other_keras) for each in (alone, two)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# No strategy lets this pass and no Keras generation either: the refusal comes from `tf.function`, which knows neither.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 002 shows this loop and blames the names. Its example, run as it is printed, stops at the second batch. Give both
# variables one fixed name each, which is its advice, and it stops at the same place.


# %% tags=["claims"]
def second_example(weight_name, bias_name, optimizer):
    """The document's second example: does it run to its end?"""
    data = np.random.default_rng(0).normal(size=(10, 4, 10)).astype("float32")
    try:
        for number in range(10):
            w = tf.Variable(tf.random.normal([10, 1]), name=weight_name.format(number))
            b = tf.Variable(tf.random.normal([1]), name=bias_name.format(number))
            with tf.GradientTape() as tape:
                y_pred = tf.matmul(data[number], w) + b
                loss = tf.reduce_mean(y_pred)
            gradients = tape.gradient(loss, [w, b])
            optimizer.apply_gradients(zip(gradients, [w, b]))
    except (ValueError, KeyError):
        return False
    return True


def two_of_one_name():
    """Two variables of one name in one optimizer: is the value of one also that of the other?"""
    first, second = new_weights("twin"), new_weights("twin")
    optimizer = tf.keras.optimizers.SGD(RATE)
    optimizer.apply_gradients([(tf.ones((3, 1)), first), (-tf.ones((3, 1)), second)])
    return np.array_equal(first, second)


def sgd():
    return tf.keras.optimizers.SGD(0.01)


def forgiving(weights, gradient):
    """An optimizer from before Keras 2 that keeps no list of its variables."""
    tf.compat.v1.train.GradientDescentOptimizer(RATE).apply_gradients([(gradient, weights)])


clinic.judges(
    {
        "002-C1": [
            second_example("weight", "bias", sgd()),
            by_function(lambda: new_weights("weight")),
            two_of_one_name(),
        ],
        "002-C4": [
            not second_example("weight_{}", "bias_{}", sgd()),
            by_hand(kept(), forgiving) and not by_hand(numbered(), forgiving),
            by_hand(kept()) and not by_hand(numbered()),
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# Nothing complains here: the update is written by hand and nothing is traced. Yet the factor that this layer multiplies by
# never gets further than one step from 1. Change the layer so that it learns.


# %% tags=["exercise"]
class Factor(tf.keras.layers.Layer):
    def call(self, inputs):
        self.factor = tf.Variable(1.0)
        return inputs * self.factor


@experiment
def attempt(setup):
    layer = Factor()
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(tf.constant([1.0])))
        layer.factor.assign_sub(0.1 * tape.gradient(loss, layer.factor))
    return Proof("five steps of 0.1 lead from 1 to 0.5", [layer.factor], [0.5])


clinic.exercise(attempt)


# %% tags=["solution"]
class LearnedFactor(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.factor = tf.Variable(1.0)

    def call(self, inputs):
        return inputs * self.factor


@experiment
def solved(setup):
    layer = LearnedFactor()
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(tf.constant([1.0])))
        layer.factor.assign_sub(0.1 * tape.gradient(loss, layer.factor))
    return Proof("five steps of 0.1 lead from 1 to 0.5", [layer.factor], [0.5])


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm10 variable_unknown_to_optimizer](fm10_variable_unknown_to_optimizer.ipynb): what the optimizer says of such a variable.
# - [fm14 weights_not_shared](fm14_weights_not_shared.ipynb): two objects where you meant one.
