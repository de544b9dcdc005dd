# %% [markdown]
# # FM01. `numpy() is only available when eager execution is enabled`: reading weights in `strategy.run`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `NotImplementedError: DistributedVariable.numpy() is only available when eager execution is enabled.` | `.numpy()` of a variable; on Keras 3 `get_weights()`, too | 2, 3 |
# | `NotImplementedError: numpy() is only available when eager execution is enabled.` | the same without a strategy | 2, 3 |
# | `RuntimeError: Method requires being in cross-replica context, use get_replica_context().merge_call()` | `get_weights()` of a model under a strategy, also if the step is not traced | 2 |
# | `RuntimeError: Cannot get value inside Tensorflow graph function.` | `get_weights()` of a layer, or without a strategy | 2 |
# | `AttributeError: 'SymbolicTensor' object has no attribute 'numpy'` | `loss.numpy()`: see FM07 | 2, 3 |
#
# `tf.function` traces the step before it runs. A weight has no value that could be converted to NumPy while the step is traced.
#
# *Raises on Keras 2 and 3, under every strategy and without one.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm01",
    slug="host_read_in_replica",
    title="`numpy() is only available when eager execution is enabled`: reading weights in `strategy.run`",
    sees="`get_weights()` or `.numpy()` in the function given to `strategy.run` raises",
    fix="read the weights after the step, outside of `strategy.run`, or return tensors from the step",
    document="000",
    switches=("keras", "strategy"),
    symptoms=(
        Symptom(
            "NotImplementedError",
            r"numpy\(\) is only available when eager execution is enabled",
            keras=(3,),
        ),
        Symptom(
            "RuntimeError",
            r"Cannot get value inside Tensorflow graph function",
            strategies=("default",),
            keras=(2,),
        ),
        Symptom(
            "RuntimeError",
            r"Method requires being in cross-replica context, use get_replica_context",
            keras=(2,),
        ),
    ),
    prints="kernel after the step: [[0.75]]",
    exercise_prints="largest weight after the step: 0.75",
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm01", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# You want to see the weights after each step, so the step prints them. Without `tf.function` this works on Keras 3.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Print after the step. `model.get_weights()` reads one copy of each weight. An optimizer keeps the copies of a weight equal.
# Those of the moving statistics of `BatchNormalization` differ, see [FM38](fm38_replica_state_diverges.ipynb). If you need a
# value from inside the step, return a tensor, such as `tf.identity(model.weights[0])` or the loss. `strategy.run` returns one
# for each replica, and `strategy.experimental_local_results` lists them. To see a value while debugging, call `tf.print` in the
# step.
#
# In `fit`, read the weights in a callback, such as in its `on_train_batch_end`, and not in a `train_step` of your own.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# `tf.function` calls your Python function once for each new input signature, and records its TensorFlow operations as a graph.
# This call is the trace. Later calls with the same signature run the graph, without Python. During the trace variables and
# tensors have no values, and `get_weights()` and `.numpy()` are Python that needs values. The number of devices does not matter.
#
# On Keras 2 `model.get_weights()` opens `strategy.scope()` first, which a replica may not do. So it also fails in an eager
# `strategy.run`, with a message about contexts.
#
# The table shows three ways to read a weight. See [tracing](https://www.tensorflow.org/guide/function#tracing) in TensorFlow's
# guide.

# %% tags=["figure"]
# Reads one weight in three ways: after the step, and in the step with and without tf.function.
import tensorflow as tf

from strategy_clinic import build_strategy, figures

READS = {
    "model.get_weights()": lambda model: model.get_weights(),
    "kernel.numpy()": lambda model: model.weights[0].numpy(),
    "tf.identity(kernel)": lambda model: tf.identity(model.weights[0]),
}


def make_model():
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
    return tf.keras.Sequential([tf.keras.Input((1,)), dense])


def works(read, model):
    try:
        read(model)
    except (RuntimeError, NotImplementedError):
        return False
    return True


def in_step(setup, read, traced):
    """Whether reading works in the function that `strategy.run` calls."""
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
    found = []

    def step():
        found.append(works(read, model))

    def train_step():
        strategy.run(step)

    (tf.function(train_step) if traced else train_step)()
    return all(found)


two = session.setup.but(strategy="mirrored", devices=2)
CELLS = {
    name: [works(read, make_model()), in_step(two, read, False), in_step(two, read, True)]
    for name, read in READS.items()
}
WORDS = {name: ["works" if each else "raises" for each in row] for name, row in CELLS.items()}
COLUMNS = ["after the\nstep", "in the step,\neager", "in the step,\ntf.function"]
figures.words(WORDS, COLUMNS, "raises", "Where can a weight be read?")

# %% [markdown]
# ## Try other setups
#
# With one device the program still fails, so the place of the weights is not the cause. With `keras` 2 the message changes.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, on one and two devices, under central storage, and with the other version of Keras:

# %% tags=["table"]
one = two.but(devices=1)
SETUPS = [two.but(strategy="default", devices=1), one, two, two.but(strategy="central_storage")]
session.table([*SETUPS, two.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# This step should report the largest weight, and it raises. Change one line, so that `tf.function` can still trace the step.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% tags=["tests"]
# Tests that `fit` keeps the copies of a weight equal, and not those of a moving statistic.
import numpy as np
from strategy_clinic.programs.variable_copies import values_of


def after_fit(setup):
    """Whether the copies of each weight, and of each moving statistic, are equal after `fit`."""
    with build_strategy(setup).scope():
        layers = [tf.keras.layers.Dense(2), tf.keras.layers.BatchNormalization()]
        model = tf.keras.Sequential([tf.keras.Input((1,)), *layers])
        model.compile("sgd", tf.keras.losses.MeanSquaredError())
    # The halves of the batch differ in mean and variance.
    data = np.arange(12.0, dtype="float32").reshape(12, 1) ** 2
    model.fit(data, data, batch_size=12, shuffle=False, verbose=0)
    kinds = model.trainable_variables, model.non_trainable_variables[:2]
    return [[len({each.tobytes() for each in values_of(w)}) == 1 for w in kind] for kind in kinds]


weights_equal, statistics_equal = after_fit(two)
assert all(weights_equal) and not any(statistics_equal)

# %% [markdown]
# ## Read next
#
# - [FM07](fm07_python_in_traced_step.ipynb): NumPy in a traced step, and `loss.numpy()` there.
# - [FM02](fm02_cross_replica_call_in_replica.ipynb): `strategy.reduce` in the step, with the message about contexts.
# - [FM39](fm39_per_replica_on_host.ipynb): how to read what `strategy.run` returns.
# - [FM04](fm04_weights_path_refused.ipynb): saving the weights instead of reading them.
# - What an answer on `get_weights()` says: [document 000](documents/000_weights_in_run.ipynb).
