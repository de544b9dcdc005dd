# %% [markdown]
# # FM11. `not enough values to unpack (expected 2, got 0)`: the model has no variables yet
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `ValueError: not enough values to unpack (expected 2, got 0)` | `optimizer.apply_gradients` | 3 |
# | `IndexError: list index out of range` | `accumulated[i] += gradient`, on a list made from `model.trainable_variables`; on Keras 2 of a subclass of `Model` | 2, 3 |
# | `` ValueError: You called `set_weights(weights)` on layer … with a weight list of length 2, but the layer was expecting 0 weights. `` | `model.set_weights`; on Keras 2 for a subclass of `Model` | 2, 3 |
# | `ValueError: You are loading weights into a model that has not yet been built. …` | `model.load_weights` | 3 |
# | `ValueError: Weights for model 'sequential' have not yet been created. …` | `trainable_variables`, `get_weights` and `set_weights` of a `Sequential` | 2 |
# | `` ValueError: This model has not yet been built. Build the model first by calling `build()` … `` | `model.summary` | 2 |
#
# The program uses the variables of a model that has not been called, and such a model has none.
#
# *Raises on Keras 2 and 3, under every strategy. On Keras 2 a subclass of `Model` gives a wrong result without an error.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm11",
    slug="unbuilt_model",
    title="`not enough values to unpack (expected 2, got 0)`: the model has no variables yet",
    sees="`apply_gradients` raises `not enough values to unpack (expected 2, got 0)`, or a training changes nothing",
    fix="call the model once, or begin it with `tf.keras.Input`, before anything asks for its variables",
    document="002",
    switches=("keras", "strategy"),
    symptoms=(
        Symptom("ValueError", r"not enough values to unpack \(expected 2, got 0\)", keras=(3,)),
        Symptom("ValueError", r"Weights for model '\w+' have not yet been created", keras=(2,)),
    ),
    prints="bias after one update from two batches: [-0.5]",
    exercise_prints="the same prediction: True",
    unavailable={
        "central_storage": "Keras 3 creates no weights in its steps, and raises another error before the update"
    },
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
# ## The program
#
# It adds up the gradients of two batches and applies the sum in one update. Each total starts as zeros of the shape of its
# variable.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Call the model once before anything asks for its variables. A `Sequential` can begin with `tf.keras.Input` instead: then it
# creates its weights at once, as a functional model does.
#
# `zip` raises nothing if lists differ in length. The check below the program does: call
# `assert_gradients_fit(totals, model.trainable_variables)` right before `apply_gradients`.

# %% tags=["fixed"]
# fixed.py

# %% tags=["figure"]
# The source of a check for your own program.
from strategy_clinic import checks, pasted

print(pasted(checks.assert_gradients_fit))

# %% [markdown]
# ## Why
#
# `Dense(1)` learns the number of its inputs from its first input, and creates its kernel then. Before that,
# `trainable_variables` is an empty list. The list of totals that is built from it stays empty when the model gets its weights.
#
# `zip` stops at the end of the shorter list, so no gradient is added and no pair is left. `apply_gradients` of Keras 3 unpacks
# the pairs into gradients and variables, which fails if there are none. That of Keras 2 accepts an empty update, so a subclass
# of `Model` trains there without an error, and its weights do not change.
#
# Three other causes give `apply_gradients` of Keras 3 no pairs:
#
# - The weights of the model are plain attributes such as `self.w = tf.Variable(1.0)`, which Keras 3 does not collect: see
#   [FM66](fm66_variable_not_of_keras.ipynb).
# - All layers are frozen.
# - The result of `zip` was used before. It can be read once: write `list(zip(...))`.
#
# In `fit` the first two causes raise nothing on Keras 3. If no trainable weight is left, it warns `The model does not have any
# trainable weights.` If other layers train, nothing is said, and the plain `tf.Variable` keeps its first value.
#
# `build` does not always help: on Keras 3 it creates no weights in a subclass of `Model` that does not define `build` itself,
# and warns that the layer `looks like it has unbuilt state`.
#
# A model with a `train_step` may have no `call`, as a VAE, or one that takes only a part of `x`: it trains without a strategy. Under
# one, `fit` of Keras 3 first calls it on the whole `x`, and then the loss and metrics of `compile`, to build them. It raises
# `Unable to automatically build the model`, or what `call` raises: let `call` take the whole `x`, and compile no loss where there
# are no labels.
#
# See [the guide to Sequential](https://www.tensorflow.org/guide/keras/sequential_model#specifying_the_input_shape_in_advance).

# %% tags=["figure"]
# Whether three kinds of model have variables right after they are created, after `build`, and after a first call.
import warnings

import tensorflow as tf

from strategy_clinic import figures


class Model(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(1)

    def call(self, inputs):
        return self.dense(inputs)


def sequential(*first):
    return lambda: tf.keras.Sequential([*first, tf.keras.layers.Dense(1)])


def has_weights(model):
    try:
        return len(model.trainable_variables) > 0
    except ValueError:  # Keras 2, for a Sequential without weights
        return False


def moments(make):
    new, built, called = make(), make(), make()
    with warnings.catch_warnings(action="ignore"):
        built.build((None, 3))
    called(tf.ones((1, 3)))
    return [has_weights(new), has_weights(built), has_weights(called)]


MOMENTS = {
    "Sequential([Dense])": moments(sequential()),
    "Sequential([Input, Dense])": moments(sequential(tf.keras.Input((3,)))),
    "subclass of Model": moments(Model),
}
COLUMNS = ["new", "after build", "after a call"]
figures.grid(MOMENTS, COLUMNS, "yes", "no", "Does the model have variables?")

# %% [markdown]
# ## Try other setups
#
# With Keras 2 the message is another one, and it comes earlier: at the line that asks for the variables.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy and on two and four devices, and with the other version of Keras:

# %% tags=["table"]
alone = session.setup.but(strategy="default", devices=1)
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [alone, two, two.but(devices=4)]
session.table([*SETUPS, alone.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# The same mistake with another message, and without a gradient: a model is created and gets the weights of a trained one.
# Change the program so that it prints `True`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% tags=["tests"]
# Tests whether `fit` trains a `tf.Variable` that a layer has as an attribute, and a model without `call` under a strategy.
import numpy as np


class Scale(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.scale = tf.Variable(1.0)

    def call(self, inputs):
        return inputs * self.scale


def plain_variable_trains():
    """Whether `fit` changes a `tf.Variable` that a layer has as an attribute, beside a layer that trains."""
    scale = Scale()
    model = tf.keras.Sequential([tf.keras.Input((1,)), scale, tf.keras.layers.Dense(1)])
    model.compile("sgd", tf.keras.losses.MeanSquaredError())
    with warnings.catch_warnings(action="error"):
        model.fit(np.ones((8, 1)), np.full((8, 1), 5.0), verbose=0)
    return float(scale.scale) != 1.0


assert plain_variable_trains() == (session.setup.keras == 2)


class OwnStep(tf.keras.Model):
    """A model without `call`, whose one part is built."""

    def __init__(self):
        super().__init__()
        self.part = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])

    def train_step(self, data):
        return {"loss": tf.reduce_mean(self.part(data))}


class Called(OwnStep):
    def call(self, inputs):
        return self.part(inputs)


def fit_raises(kind, **compiled):
    """What `fit` under a strategy raises, without labels."""
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        model = kind()
        model.compile("sgd", **compiled)
    try:
        model.fit(np.ones((8, 1), "float32"), verbose=0)
    except (RuntimeError, ValueError) as error:
        return str(error)
    return ""


if session.setup.keras == 3:
    assert "does not have a `call()` method" in fit_raises(OwnStep)
    assert "None values not supported" in fit_raises(Called, loss="mse")
else:
    assert fit_raises(OwnStep) == ""
assert fit_raises(Called) == ""

# %% [markdown]
# ## Read next
#
# - [FM13](fm13_gradients_inconsistent.ipynb): a gradient of a sum is `None`, or belongs to another variable.
# - [FM34](fm34_no_gradients.ipynb): the model has variables, and all gradients are `None`.
# - [FM35](fm35_restore_before_build.ipynb): a checkpoint is restored into an unbuilt model.
# - [FM32](fm32_optimizer_built_in_replica.ipynb): an optimizer that is not built, in a traced step.
# - [FM23](fm23_variable_outside_scope.ipynb): totals that are variables belong in the scope of the strategy.
# - What an answer on accumulated gradients says: [document 002](documents/002_gradient_accumulation.ipynb).
