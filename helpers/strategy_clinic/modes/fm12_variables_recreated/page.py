# %% [markdown]
# # FM12. Variables made anew in every batch have nothing to accumulate into
#
# A layer of your own makes its weight in `call`, where it is used. In `fit`, or in a training step of your own, the first batch
# is refused. Where nothing is traced, training may run to its end, and every batch starts again from the first value.
#
# ```text
# ValueError: tf.function only supports singleton tf.Variables created on the first call. Make sure the
# tf.Variable is only created once or created outside tf.function. …
# ```
#
# *Loud, under every strategy and both Keras generations; silent where nothing is traced and the update is written by hand.
# Switches: `strategy`, `keras`. From document 002, "How can inconsistent trainable variables be addressed when accumulating
# gradients in TensorFlow?"*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm12",
    slug="variables_recreated",
    title="Variables made anew in every batch have nothing to accumulate into",
    sees="`tf.function only supports singleton tf.Variables`, or every batch starts again from the first value",
    fix="make the variables once, in `build` or `__init__`, never in `call` or in the training step",
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
import strategy_clinic as clinic

session = clinic.open("fm12", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The layer multiplies its input by a factor, and the factor is to be learned. You make the variable in the line above the one
# that needs it, with a name. You believe that the next batch finds the variable of this name that is already there.

# %%
import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures

RATE, BATCHES = 0.1, 3


class Factor(tf.Module):
    """A layer without Keras: `__call__` is what `call` is in a Keras layer."""

    def __call__(self, inputs):
        self.factor = tf.Variable(1.0, name="factor")  # guilty: every call makes another one
        return inputs * self.factor


def batch(number):
    return np.random.default_rng(number).normal(size=(4, 1)).astype("float32")


def train(setup, make):
    """One step for each batch, towards a factor of 3; every replica has the same batch."""
    strategy = build_strategy(setup)
    with strategy.scope():
        layer, optimizer = make(), tf.keras.optimizers.SGD(RATE)

    def replica_step(data):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(layer(data) - 3.0 * data))
            loss = loss / strategy.num_replicas_in_sync
        optimizer.apply_gradients([(tape.gradient(loss, layer.factor), layer.factor)])

    @tf.function
    def train_step(data):
        strategy.run(replica_step, args=(data,))

    for number in range(BATCHES):
        train_step(tf.constant(batch(number)))
    return layer.factor


def descended(batches=BATCHES):
    """The factor after the same steps in NumPy."""
    factor = 1.0
    for number in range(batches):
        factor = factor - RATE * 2 * (factor - 3.0) * np.mean(batch(number) ** 2)
    return factor


# %%
@experiment
def broken(setup):
    factor = train(setup, Factor)
    return Proof("the factor has learned from all batches", [tf.identity(factor)], [descended()])


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# A `tf.Variable` is an object that owns memory. Its name is a label. TensorFlow 2 never looks up a variable by name: calling the
# constructor twice makes two variables.
#
# If the first trace creates variables, `tf.function` traces a second time. Creating a variable then raises this error. `fit`
# traces the training step in the same way; Keras puts `Exception encountered when calling …` before the message. In the nightly
# of October 2026, TensorFlow 2.23, the message adds that variables made in a layer or in `call` are meant too.
#
# Without `tf.function` the optimizer is next. It knows only the variables of its first step
# ([fm10](fm10_variable_unknown_to_optimizer.ipynb)). An update written by hand refuses nothing: each variable learns from one
# batch and is dropped.
#
# The picture trains one layer in these three ways. See
# [creating variables](https://www.tensorflow.org/guide/function#creating_tfvariables) in TensorFlow's guide.

# %%
alone = session.setup.but(strategy="default", devices=1)
UPDATE = {
    "optimizer": lambda: tf.keras.optimizers.SGD(RATE).apply_gradients,
    "by hand": lambda: lambda pairs: [v.assign_sub(RATE * g) for g, v in pairs],
    # An optimizer from before Keras 2, which keeps no list of its variables.
    "forgiving": lambda: tf.compat.v1.train.GradientDescentOptimizer(RATE).apply_gradients,
}


def outcome(make, update, wrap=lambda step: step):
    """Trains what `make` gives for each batch: does the factor learn from all batches?"""

    @wrap
    def step(data):
        factor = make()
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(data * factor - 3.0 * data))
        update([(tape.gradient(loss, factor), factor)])
        return tf.identity(factor)

    try:
        last = [step(tf.constant(batch(number))) for number in range(BATCHES)][-1]
    except (ValueError, KeyError):  # Keras 3 and Keras 2
        return "raises"
    return "learns" if np.allclose(last, descended(), atol=1e-5) else "forgets"


def once():
    one = tf.Variable(1.0, name="factor")
    return lambda: one


def same_name():
    return lambda: tf.Variable(1.0, name="factor")


def new_names():
    """The names count up, as in the document's example."""
    count = iter(range(100))
    return lambda: tf.Variable(1.0, name=f"factor_{next(count)}")


ROWS = {"made once": once, "in each call": same_name, "in each call,\nnew names": new_names}
LEARNS = {
    name: [
        outcome(make(), UPDATE["by hand"](), tf.function),
        outcome(make(), UPDATE["optimizer"]()),
        outcome(make(), UPDATE["by hand"]()),
    ]
    for name, make in ROWS.items()
}
COLUMNS = ["tf.function", "eager,\noptimizer", "eager,\nby hand"]
figures.words(LEARNS, COLUMNS, ["raises", "forgets"], "When is the variable made?")

# %% [markdown]
# ## The fix
#
# Make the variable once: in `build` or `__init__` of a layer, or before the training step. Before:
#
# ```python
# import tensorflow as tf
#
# class Factor(tf.keras.layers.Layer):
#     def call(self, inputs):
#         self.factor = tf.Variable(1.0)
#         return inputs * self.factor
#
# model = tf.keras.Sequential([Factor()])
# model.compile(tf.keras.optimizers.SGD(0.125), loss="mse")
# model.fit(tf.ones((4, 1)), 3 * tf.ones((4, 1)), verbose=0)  # ValueError: tf.function only supports singleton tf.Variables
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# class Factor(tf.keras.layers.Layer):
#     def build(self, input_shape):
#         self.factor = self.add_weight(shape=(), initializer="ones")
#     def call(self, inputs):
#         return inputs * self.factor
#
# model = tf.keras.Sequential([Factor()])
# model.compile(tf.keras.optimizers.SGD(0.125), loss="mse")
# model.fit(tf.ones((4, 1)), 3 * tf.ones((4, 1)), verbose=0)
# print(model.get_weights()[0])  # 1.5
# ```
#
# `add_weight` in `call` fails too; Keras 3 then says `You cannot add new elements of state`. The layers of Keras make their
# weights in their first call, so a model that has none yet must not meet a `tf.function` that has already been called.


# %%
class LearnedFactor(tf.Module):
    def __init__(self):
        super().__init__()
        self.made = tf.Variable(1.0, name="factor")

    def __call__(self, inputs):
        self.factor = self.made  # repair
        return inputs * self.factor


@experiment
def fixed(setup):
    factor = train(setup, LearnedFactor)
    return Proof(
        "the factor has learned from all batches",
        [tf.identity(factor)],
        [descended()],
        tolerance=1e-5,
    )


session.proves(fixed)

# %%
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [alone, two, two.but(strategy="central_storage")]
SETUPS += [two.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Switch the strategy or Keras: the refusal stays the same, because it comes from `tf.function`.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# Document 002, "How can inconsistent trainable variables be addressed when accumulating gradients in TensorFlow?":
#
# > even a slight variation in the naming convention will lead to separate variable objects, preventing proper gradient
# > accumulation.
#
# > The dynamic creation of variables `w` and `b` in each iteration, with different names, prevents correct gradient accumulation.
#
# The second sentence names the cause: variables are created in each iteration. The names change nothing. The document's example
# stops at its second batch with new names, and also with one fixed name for each variable, which is the advice of the first.


# %% tags=["claims"]
def second_example(weight_name, bias_name):
    """The document's second example: does it run to its end?"""
    data = np.random.default_rng(0).normal(size=(10, 4, 10)).astype("float32")
    optimizer = tf.keras.optimizers.SGD(learning_rate=0.01)
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
    first, second = tf.Variable(1.0, name="twin"), tf.Variable(1.0, name="twin")
    UPDATE["optimizer"]()([(tf.constant(1.0), first), (tf.constant(-1.0), second)])
    return np.array_equal(first, second)


def learns(make, way):
    return outcome(make(), UPDATE[way]()) == "learns"


session.judges(
    {
        "002-C1": [
            second_example("weight", "bias"),
            LEARNS["in each call"][0] == "learns",
            two_of_one_name(),
        ],
        "002-C4": [
            not second_example("weight_{}", "bias_{}"),
            learns(once, "forgiving") and not learns(new_names, "forgiving"),
            learns(once, "by hand") and not learns(new_names, "by hand"),
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# One traced function is to serve two models. The first call works, and the second is refused in the words of this page. Both
# models shall add up their three inputs. Change how the models are made, not the function.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    def make_model():
        return tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])

    @tf.function
    def predict(model, data):
        return model(data)

    got = [predict(model, tf.ones((1, 3))) for model in (make_model(), make_model())]
    return Proof("both models add up their inputs", got, [[[3.0]], [[3.0]]])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    def make_model():
        layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="ones")]
        return tf.keras.Sequential(layers)

    @tf.function
    def predict(model, data):
        return model(data)

    got = [predict(model, tf.ones((1, 3))) for model in (make_model(), make_model())]
    return Proof("both models add up their inputs", got, [[[3.0]], [[3.0]]])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm10 variable_unknown_to_optimizer](fm10_variable_unknown_to_optimizer.ipynb): what the optimizer says of a new variable.
# - [fm11 unbuilt_model](fm11_unbuilt_model.ipynb): a model whose weights do not exist before its first call.
# - [fm32 optimizer_built_in_replica](fm32_optimizer_built_in_replica.ipynb): slot variables that are made in a traced step.
# - [fm14 weights_not_shared](fm14_weights_not_shared.ipynb): two objects where you meant one.
