# %% [markdown]
# # FM12. `tf.function only supports singleton tf.Variables`: a variable created in `call` or in the step
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `ValueError: tf.function only supports singleton tf.Variables created on the first call. Make sure the tf.Variable is only created once or created outside tf.function. …` | `fit`, `predict` and any `tf.function` | 2, 3 |
# | `ValueError: You cannot add new elements of state (variables or sub-layers) to a layer that is already built. …` | `add_weight` in `call`, or `self.dense = Dense(...)` in `call` | 3 |
#
# A variable is created in `call` or in the step, so each call creates another one: by `tf.Variable`, or by a layer, a metric or
# an optimizer that is created there.
#
# *Raises on Keras 2 and 3, under every strategy. Without `tf.function` it can be a wrong result without an error.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm12",
    slug="variables_recreated",
    title="`tf.function only supports singleton tf.Variables`: a variable created in `call` or in the step",
    sees="`tf.function only supports singleton tf.Variables`, or each step starts again from the initial value",
    fix="create variables, layers, metrics and optimizers once, before the step or in `__init__` and `build`",
    document="002",
    switches=("strategy", "keras"),
    symptoms=(
        Symptom(
            "ValueError",
            r"tf\.function only supports singleton tf\.Variables",
        ),
    ),
    prints="factor after one step: 1.5",
    exercise_prints="first model: [[3.]]\nsecond model: [[3.]]",
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
# ## The program
#
# A layer multiplies its input by a factor, and one step of gradient descent moves the factor from 1 towards 3.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Create the variable once, in `__init__`. If its shape depends on the input, create it in `build(self, input_shape)`, which
# Keras calls before the first call. The same holds for layers. Create metrics and optimizers before the step.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# `tf.function` records the operations of a step in a graph, and later calls run the graph without Python. A variable that is
# created in the step would have to exist before the graph runs. `tf.function` allows that for the first call only: if the first
# trace creates variables, it traces the step again and expects no new ones. So do `fit` and `predict`.
#
# A name does not help: `tf.Variable(1.0, name="factor")` creates another variable each time.
#
# Some variables are created late by Keras itself. A layer creates its weights in its first call, and an optimizer its slots in
# its first step. If one `tf.function` serves two models or two optimizers, the second one creates its variables in a later
# call, and this error follows. Build the model and the optimizer before, or create one `tf.function` for each.
#
# Without `tf.function`, an optimizer that gets the variable raises `Unknown variable` (Keras 2: `The optimizer cannot recognize
# variable`) in the second step ([FM10](fm10_variable_unknown_to_optimizer.ipynb)). Nothing raises if you write the update by
# hand, or if `compile(run_eagerly=True)` makes `fit` eager: on Keras 3 `fit` does not train such a variable. Then each step
# starts from the initial value.
#
# The table runs two steps of both programs in three ways. See [creating
# variables](https://www.tensorflow.org/guide/function#creating_tfvariables) in TensorFlow's guide.

# %% tags=["figure"]
# Two steps of both programs: as they are, without tf.function, and with an update by hand.
from strategy_clinic import figures

APPLY = "optimizer.apply_gradients([(tape.gradient(loss, scale.factor), scale.factor)])"
BY_HAND = "scale.factor.assign_sub(0.125 * tape.gradient(loss, scale.factor))"
TRACED = "@tf.function\n"
WAYS = {"@tf.function": TRACED, "eager, optimizer": "", "eager, assign_sub": ""}


def two_steps(subject):
    texts = session.variants(subject, TRACED, WAYS)
    texts["eager, assign_sub"] = texts["eager, assign_sub"].replace(APPLY, BY_HAND)
    twice = {way: text.replace("\nprint", "\ntrain_step()\nprint") for way, text in texts.items()}
    return session.prints(twice, [session.setup.but(strategy="default", devices=1)])


def outcome(printed):
    if "Error" in printed:
        return "raises"
    return "learns" if printed.endswith(" 1.875") else "starts again"


in_call, in_init = two_steps("broken"), two_steps("fixed")
TRIED = {way: [outcome(in_call[way][0]), outcome(in_init[way][0])] for way in WAYS}
COLUMNS = ["created in\ncall", "created in\n__init__"]
figures.words(TRIED, COLUMNS, ["raises", "starts again"], "Does the factor learn in two steps?")

# %% [markdown]
# ## Try other setups
#
# The message is the same under every strategy and with both versions of Keras, because it comes from `tf.function`.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, under two strategies, and with the other version of Keras:

# %% tags=["table"]
alone = session.setup.but(strategy="default", devices=1)
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [alone, two, two.but(strategy="central_storage")]
session.table([*SETUPS, two.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# One traced function serves two models, as in a loop over folds. The first call works, and the second raises the error of this
# page. Change how the models are created, and leave the function as it is. Both should print the sum of three ones.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% tags=["tests"]
# Tests that eager `fit` does not train a variable that a layer creates in each call.
import numpy as np
import tensorflow as tf


class Recreates(tf.keras.layers.Layer):
    def call(self, inputs):
        self.factor = tf.Variable(1.0)
        return inputs * self.factor


def fit_trains_it():
    """Whether eager `fit` changes the factor, beside a layer that trains."""
    layer = Recreates()
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1), layer])
    model.compile("sgd", tf.keras.losses.MeanSquaredError(), run_eagerly=True)
    model.fit(np.ones((4, 1)), np.full((4, 1), 5.0), epochs=2, verbose=0)
    return float(layer.factor) != 1.0


if session.setup.keras == 3:
    assert not fit_trains_it()

# %% [markdown]
# ## Read next
#
# - [FM10](fm10_variable_unknown_to_optimizer.ipynb): an optimizer gets a variable that it does not know.
# - [FM11](fm11_unbuilt_model.ipynb): a model whose weights do not exist before its first call.
# - [FM32](fm32_optimizer_built_in_replica.ipynb): an optimizer creates its slots in a traced step under a strategy.
# - [FM43](fm43_retracing_every_step.ipynb): what else makes `tf.function` trace again.
# - [FM05](fm05_untracked_variable.ipynb): a variable that is created once, and that no checkpoint holds.
# - What an answer on accumulated gradients says: [document 002](documents/002_gradient_accumulation.ipynb).
