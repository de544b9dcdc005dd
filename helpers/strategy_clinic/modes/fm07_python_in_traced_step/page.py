# %% [markdown]
# # FM07. `Cannot convert a symbolic tf.Tensor to a numpy array`: NumPy inside `tf.function` or `fit`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `NotImplementedError: Cannot convert a symbolic tf.Tensor (sub:0) to a numpy array. This error may indicate that you're trying to pass a Tensor to a NumPy call, which is not supported.` | `np.mean(tensor)` in a loss, a metric, `Dataset.map` or a step | 2, 3 |
# | `AttributeError: 'SymbolicTensor' object has no attribute 'numpy'` | `tensor.numpy()` | 2, 3 |
# | `RuntimeError: Unable to automatically build the model. …` | the same in a subclass of `Model` under a strategy; FM11 has this message, too | 3 |
# | `TypeError: float() argument must be a string or a real number, not 'SymbolicTensor'` | `float(tensor)` | 2, 3 |
#
# `tf.function`, `fit` and `Dataset.map` trace Python functions with tensors that have no values yet, and NumPy needs values.
# NumPy that gets no tensor raises nothing: `np.random.normal()` gives the same number in every step.
#
# *Raises on Keras 2 and 3, under every strategy. Random numbers and counters are a wrong result without an error.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm07",
    slug="python_in_traced_step",
    title="`Cannot convert a symbolic tf.Tensor to a numpy array`: NumPy inside `tf.function` or `fit`",
    sees="NumPy in a loss, a metric or a step cannot convert a symbolic tensor, or gives one value forever",
    fix=(
        "use `tf.*` for all that depends on tensors or must change from step to step; an operator asks NumPy, too, where the "
        "shapes or types of a tensor and an array do not fit"
    ),
    document="001",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "NotImplementedError",
            r"trying to pass a Tensor to a NumPy call, which is not supported",
        ),
    ),
    prints="bias after one step: [0.25]",
    exercise_prints="different results: 3",
    unavailable={
        "multi_worker": "`fit` of Keras 3 does not run there",
        "parameter_server": "`fit` does not run there",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm07", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# One step of `fit` with a custom loss, written in NumPy.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Write it with `tf.*`, or with `keras.ops` on Keras 3. Most functions of NumPy have a counterpart in both.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# Where only NumPy or another library can do the work, in a metric or in `Dataset.map`, call it from the graph:
#
# ```python
# def metric(labels, outputs):
#     value = tf.numpy_function(in_numpy, [labels, outputs], tf.float32)
#     return tf.ensure_shape(value, ())
# ```
#
# `in_numpy` must return the type that you name: `np.float32(...)` around its result. A Python number or a `float64` raises
# `0-th value returned by pyfunc_0 is double, but expects float`.
#
# `tf.numpy_function` has no gradient, so it cannot be a loss, and XLA cannot compile it
# ([FM24](fm24_xla_refuses.ipynb)). What is computed from no tensor can stay in NumPy outside of the step: pass its result to
# the step as a tensor. A Python number would be traced again for each new value ([FM43](fm43_retracing_every_step.ipynb)).
#
# `if`, `while` and `for` on tensors are another matter: see [FM67](fm67_condition_in_fit.ipynb).
#
# To look at values, use `tf.print`, or compile with `run_eagerly=True` for a while. That is not a repair: a loss in NumPy then
# raises `No gradients provided for any variable`.

# %% [markdown]
# ## Why
#
# `tf.function` traces: it runs the Python function once for each new input signature, and records the TensorFlow operations in a
# graph. Later calls with that signature run the graph, and no Python. During the trace the arguments are symbolic tensors,
# which have a shape and a type but no value. `tf.*` operations accept them. NumPy asks for the value, and that raises.
#
# `np.random.normal()` and `counter += 1` get no tensor. They run once for each trace, and their result is a constant of the
# graph.
#
# The table calls each function three times with different data. See [the guide to
# `tf.function`](https://www.tensorflow.org/guide/function#executing_python_side_effects).

# %% tags=["figure"]
# How many different values each function returns in three calls, without and with tf.function.
import numpy as np
import tensorflow as tf

from strategy_clinic import figures

calls = {"made": 0}


def counter():
    calls["made"] += 1
    return tf.constant(float(calls["made"]))


INSIDE = {
    "tf.reduce_mean(data)": lambda data: tf.reduce_mean(data),
    "tf.numpy_function(np.mean, …)": lambda data: tf.numpy_function(np.mean, [data], tf.float32),
    "np.mean(data)": lambda data: tf.constant(np.mean(data)),
    "data.numpy().mean()": lambda data: tf.constant(data.numpy().mean()),
    "tf.random.normal(())": lambda data: tf.random.normal(()),
    "np.random.normal()": lambda data: tf.constant(np.random.normal()),
    "counter += 1": lambda data: counter(),
}


def three_calls(function):
    try:
        values = {float(function(tf.fill((2,), float(number)))) for number in range(3)}
    except (NotImplementedError, AttributeError):
        return "raises"
    return "1 value" if len(values) == 1 else f"{len(values)} values"


SEEN = {
    name: [three_calls(function), three_calls(tf.function(function))]
    for name, function in INSIDE.items()
}
COLUMNS = ["eager", "tf.function"]
figures.words(SEEN, COLUMNS, ["raises", "1 value"], "What do three calls return?")

# %% [markdown]
# ## Try other setups
#
# The message is the same under every strategy and with both versions of Keras: tracing belongs to TensorFlow.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, under two strategies, and with the other version of Keras:

# %% tags=["table"]
one = session.setup.but(strategy="default", devices=1)
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [one, two, two.but(strategy="central_storage")]
session.table([*SETUPS, one.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# Each call should add new noise. Nothing raises, and all calls add the same noise. Change the program, and keep the
# `tf.function`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% tags=["tests"]
# Tests where an `if` on a tensor works.


def doubled(inputs):
    if tf.reduce_mean(inputs) > 0:
        return 2.0 * inputs
    return inputs


class Doubles(tf.keras.layers.Layer):
    def call(self, inputs):
        return doubled(inputs)


class DoublesInGraph(tf.keras.layers.Layer):
    @tf.function
    def call(self, inputs):
        return doubled(inputs)


class Steps(tf.keras.Sequential):
    def train_step(self, data):
        loss = tf.reduce_mean(self(data[0]))
        if loss > 0:
            loss = 2.0 * loss
        return {"loss": loss}


def halved(labels, outputs):
    if tf.reduce_mean(labels) > 0:
        return 0.5 * tf.reduce_mean(tf.square(labels - outputs), axis=-1)
    return tf.reduce_mean(tf.square(labels - outputs), axis=-1)


def chosen(labels, outputs):
    errors = tf.reduce_mean(tf.square(labels - outputs), axis=-1)
    return tf.where(tf.reduce_mean(labels) > 0, 0.5 * errors, errors)


def fits(loss="mse", layer=None, model=tf.keras.Sequential):
    """Whether `fit` runs with this loss, layer and class of the model."""
    layers = [tf.keras.Input((3,)), *([layer] if layer else []), tf.keras.layers.Dense(1)]
    try:
        trained = model(layers)
        trained.compile("sgd", loss)
        trained.fit(np.ones((4, 3)), np.ones((4, 1)), verbose=0)
    except (ValueError, TypeError):  # the second is the class of OperatorNotAllowedInGraphError
        return False
    return True


def calls_in_graph(layer):
    """Whether a layer can be called in a `tf.function` of one's own."""
    try:
        tf.function(lambda: layer(tf.ones((1, 1))))()
    except TypeError:
        return False
    return True


KERAS_2 = session.setup.keras == 2
assert [fits(halved), fits(layer=Doubles())] == [KERAS_2, KERAS_2]
assert not fits(model=Steps)
assert fits(tf.function(halved)) and fits(chosen) and fits(layer=DoublesInGraph())
assert tf.function(halved)(tf.ones((2, 1)), tf.zeros((2, 1))).shape == (2,)
assert calls_in_graph(DoublesInGraph()) and calls_in_graph(Doubles()) == KERAS_2
numbers = tf.data.Dataset.from_tensors(tf.ones((2, 1))).map(lambda data: halved(data, 0.0))
assert len(list(numbers)) == 1

# %% [markdown]
# ## Read next
#
# - [FM01](fm01_host_read_in_replica.ipynb): the step reads the weights as numbers.
# - [FM34](fm34_no_gradients.ipynb): NumPy between the weights and the loss in eager steps, so that there are no gradients.
# - [FM16](fm16_tpu_eager_run.ipynb): the strategy that accepts traced steps only.
# - What an answer on checkpoints says: [document 001](documents/001_checkpoints.ipynb).
