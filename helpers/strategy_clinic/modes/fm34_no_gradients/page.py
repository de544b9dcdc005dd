# %% [markdown]
# # FM34. `No gradients provided for any variable`: the loss is not connected to the weights
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `ValueError: No gradients provided for any variable.` | `fit`, `apply_gradients` | 3 |
# | `` ValueError: No gradients provided for any variable: (['dense/kernel:0', …],). Provided `grads_and_vars` is ((None, … `` | `fit`, `apply_gradients` | 2 |
# | `` ValueError: `tape` is required when a `Tensor` loss is passed. `` | `optimizer.minimize(loss, weights)` | 2 |
# | `LookupError: gradient registry has no entry for: AdjustContrastv2` | `tape.gradient` of an operation such as `tf.image.adjust_contrast` | 2, 3 |
#
# The loss has the right value, but some operation between the weights and the loss has no derivative, or the tape has not
# recorded it. Every gradient is then `None`.
#
# *Raises on Keras 2 and 3, under every strategy and without one, in `fit` and in custom loops.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm34",
    slug="no_gradients",
    title="`No gradients provided for any variable`: the loss is not connected to the weights",
    sees="`fit` or `apply_gradients` says that no gradients were provided for any variable",
    fix="compute the loss from the model's output, inside the tape, with operations that have a derivative",
    document="001",
    switches=("keras",),
    symptoms=(Symptom("ValueError", r"No gradients provided for any variable"),),
    prints="bias after one step: [0.1]",
    exercise_prints="bias after one step: [0.1]",
    unavailable={
        "multi_worker": "`fit` of Keras 3 does not run on several workers",
        "parameter_server": "`fit` needs a dataset that each worker creates",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm34", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# The loss compares the labels with rounded outputs, because the labels are whole numbers.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Compute the loss from the model's output with operations that have a derivative. Round, compare or cast to integers in a
# *metric*, `compile(metrics=...)`, which needs no gradient. To train a classifier, use a loss such as
# `tf.keras.losses.BinaryCrossentropy()` in place of the accuracy.
#
# In a custom loop, call the model and compute the loss inside `with tf.GradientTape()`. If a part must stay in NumPy, give its
# derivative yourself with `tf.custom_gradient`.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# A `GradientTape` records operations while it is open; `fit` uses one too. `gradient` follows this record from the loss back to
# the weights, and multiplies the derivatives. Where an operation is missing or has no derivative, the path ends. The gradient is
# then `None`, which means *not connected*; it is not zero.
#
# A path ends in four ways:
#
# - An operation has no derivative: `tf.round`, `tf.floor`, `tf.argmax`, `tf.one_hot`, a comparison, also in
#   `tf.where(outputs > 0.5, 1.0, 0.0)`, a cast to integers, `tf.stop_gradient`.
# - The computation leaves TensorFlow: `.numpy()`, `np.mean(...)`, `tf.numpy_function`, and on Keras 3 `model.predict`, for which
#   Keras 2 raises `LookupError: No gradient defined for operation`. In the tape call `model(inputs)`. A `tf.py_function` keeps
#   the path, because the tape records the operations inside it.
# - The model was called before the tape was open.
# - The loss does not use the output at all.
#
# `tf.sign` has a derivative, and it is zero: no error, and nothing is learned.
#
# If the targets are missing in `fit(x)`, the messages are others: `None values not supported.` on Keras 3, and `Target data is
# missing` on Keras 2.
#
# The table computes the same loss in several ways. See [Getting a gradient of
# None](https://www.tensorflow.org/guide/autodiff#getting_a_gradient_of_none).

# %% tags=["figure"]
# One loss, computed from `outputs` in several ways, and its gradient with respect to a weight.
import tensorflow as tf

from strategy_clinic import figures


def identity(array):
    return array


WAYS = {
    "outputs": identity,
    "tf.py_function": lambda outputs: tf.py_function(identity, [outputs], tf.float32),
    "tf.round": tf.round,
    "tf.cast to int32": lambda outputs: tf.cast(tf.cast(outputs, tf.int32), tf.float32),
    "outputs > 0.5": lambda outputs: tf.cast(outputs > 0.5, tf.float32),
    "tf.where(outputs > 0.5, …)": lambda outputs: tf.where(outputs > 0.5, 1.0, 0.0),
    "tf.one_hot": lambda outputs: tf.one_hot(tf.cast(outputs, tf.int32), 3)[:, 1],
    "tf.numpy_function": lambda outputs: tf.numpy_function(identity, [outputs], tf.float32),
    "outputs.numpy()": lambda outputs: tf.constant(outputs.numpy()),
}


def loss_and_gradient(way):
    weight = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        outputs = weight * tf.constant([0.0, 1.0, 2.0, 1.0])
        loss = tf.reduce_mean(tf.square(way(outputs) - 1.0))
    gradient = tape.gradient(loss, weight)
    return [f"{float(loss):.2f}", "None" if gradient is None else f"{float(gradient):.2f}"]


FOUND = {name: loss_and_gradient(way) for name, way in WAYS.items()}
figures.words(FOUND, ["loss", "gradient"], "None", "Is there a gradient?")

# %% [markdown]
# ## Try other setups
#
# With Keras 2 the message also lists all variables. Another strategy changes nothing, because the tape is the same.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, under two strategies with two devices, and with the other version of Keras:

# %% tags=["table"]
alone = session.setup.but(strategy="default", devices=1)
two = alone.but(strategy="mirrored", devices=2)
SETUPS = [alone, two, two.but(strategy="central_storage")]
session.table([*SETUPS, alone.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# All operations of this step have a derivative, and it raises the same error. Repair it. It should print `[0.1]`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM13](fm13_gradients_inconsistent.ipynb): `None` for some of the variables, a warning only.
# - [FM10](fm10_variable_unknown_to_optimizer.ipynb): gradients that the optimizer refuses.
# - [FM07](fm07_python_in_traced_step.ipynb): NumPy in a traced step, which fails before any gradient.
