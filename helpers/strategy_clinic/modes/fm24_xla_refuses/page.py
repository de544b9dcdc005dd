# %% [markdown]
# # FM24. `Detected unsupported operations when trying to compile graph`: XLA (`jit_compile`) refuses an operation
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `InvalidArgumentError: Graph execution error: … Detected unsupported operations when trying to compile graph … on XLA_CPU_JIT: PyFunc (No registered 'PyFunc' OpKernel for XLA_CPU_JIT devices …) … tf2xla conversion failed …` | XLA does not have the operation; on a GPU `XLA_GPU_JIT` | 2, 3 |
# | `` InvalidArgumentError: Input 1 to node `range` with op Range must be a compile-time constant. `` | a size that XLA cannot compute, such as a random number | 2, 3 |
# | `InvalidArgumentError: Trying to access resource … located in device … from device … Cf. https://www.tensorflow.org/xla/known_issues` | `jit_compile=True` with several mirrored devices | 2, 3 |
#
# The step is compiled by XLA, and XLA cannot compile every operation of TensorFlow. Often nobody asked for XLA: on a GPU, Keras 3
# compiles `fit` by default (`jit_compile="auto"`).
#
# *Raises on Keras 2 and 3, under every strategy, if `jit_compile` is true. A list that grows in a loop gives a wrong result
# without an error.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm24",
    slug="xla_refuses",
    title="`Detected unsupported operations when trying to compile graph`: XLA (`jit_compile`) refuses an operation",
    sees="`Detected unsupported operations when trying to compile graph`, or `Trying to access resource` on mirrored devices",
    fix="`model.compile(..., jit_compile=False)`, or write the function in TensorFlow operations of a known size",
    document="003",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "InvalidArgumentError",
            r"Trying to access resource",
            strategies=("mirrored",),
            devices=(2, 4, 8),
        ),
        Symptom(
            "InvalidArgumentError",
            r"Detected unsupported operations when trying to compile graph",
        ),
    ),
    prints="largest error: [1.0]",
    exercise_prints="running sums: [ 1.  3.  6. 10.]",
    unavailable={
        "parameter_server": "its `fit` needs a dataset for each worker",
        "multi_worker": "Keras 3 cannot build this metric from the data of several workers",
        "tpu_traced": "a step that is compiled for this CPU says nothing about a TPU",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm24", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# A metric in NumPy. `jit_compile=True` does on this CPU what Keras 3 does by default on a GPU.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Turn XLA off. The step then runs as a TensorFlow graph, in which `numpy_function` may call NumPy.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# To keep XLA, write the function in TensorFlow operations. On one device this metric also works with `jit_compile=True`:
#
# ```python
# def largest_error(labels, outputs):
#     return tf.reduce_max(tf.abs(labels - outputs))
# ```
#
# Python that has to stay, such as a print, goes outside of the compiled function: return the value.
#
# ## Why
#
# Without XLA, TensorFlow runs a graph operation by operation, and `numpy_function` is one that calls Python. XLA compiles the
# whole step to machine code for fixed shapes. It needs its own kernel for each operation, and each size when it compiles. The
# message has the name of the operation after `XLA_CPU_JIT:` or `XLA_GPU_JIT:`. A size that follows from arguments and variables
# is no obstacle: XLA computes it first.
#
# XLA is on with `tf.function(jit_compile=True)` or `model.compile(jit_compile=True)`. The default of Keras 3, `"auto"`, turns it
# on if there is a GPU, no strategy, and no layer that excludes XLA. So a script that trains on a CPU or under
# `MirroredStrategy` can fail on a single GPU: on an H200, `fit` of a model with `tf.py_function` in a layer raised
# `InvalidArgumentError` on Keras 3 and trained on Keras 2, which never turns XLA on by itself.
#
# Under `MirroredStrategy` with several devices, `jit_compile=True` failed here for every model: TensorFlow compiles the step of a
# replica on one device, and its variables are on another. Leave `"auto"` there. In your own loop, put `jit_compile=True` on a
# function that gets and returns tensors.
#
# People also meet `ResizeNearestNeighborGrad`, from `Resizing(interpolation="nearest")` behind a trainable layer, and
# `DebugNumericSummaryV2`, from `tf.debugging.enable_check_numerics()`.
#
# The picture shows functions of one operation each. In `tf.range(tensor)` the tensor is a random number. The compiled function
# returns the growing list *empty*: give `TensorArray` its `size`.

# %% tags=["figure"]
# Each function runs on this CPU without XLA and with it; "wrong" is another result without an error.
import os

import numpy as np
import tensorflow as tf

from strategy_clinic import figures


def calls_numpy(x):
    return tf.numpy_function(np.tanh, [x], tf.float32)


def prints(x):
    tf.print("the sum is", tf.reduce_sum(x), output_stream="file://" + os.devnull)
    return x + 1.0


def makes_text(x):
    return tf.strings.length(tf.strings.as_string(x))


def counts(x):
    return tf.range(tf.random.uniform([], 3, 4, tf.int32)) + tf.cast(x[0, 0], tf.int32)


def grows_a_list(x):
    listed = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for _ in tf.range(3):
        listed = listed.write(listed.size(), x)
    return listed.stack()


def sizes_a_list(x):
    listed = tf.TensorArray(tf.float32, size=3)
    for number in tf.range(3):
        listed = listed.write(number, x)
    return listed.stack()


def selects(x):
    return tf.boolean_mask(x, x > 3.0)


FUNCTIONS = {
    "tf.numpy_function": calls_numpy,
    "tf.print": prints,
    "tf.strings.as_string": makes_text,
    "tf.range(tensor)": counts,
    "TensorArray(dynamic_size=True)": grows_a_list,
    "TensorArray(size=3)": sizes_a_list,
    "tf.boolean_mask": selects,
}


def with_xla(function):
    """In one word, what compiling changes."""
    x = tf.reshape(tf.range(16.0), (4, 4))
    plain = tf.function(function)(x).numpy()
    try:
        compiled = tf.function(function, jit_compile=True)(x).numpy()
    except tf.errors.InvalidArgumentError:
        return "refused"
    return "runs" if np.array_equal(plain, compiled) else "wrong"


FOUND = {name: ["runs", with_xla(function)] for name, function in FUNCTIONS.items()}
COLUMNS = ["without XLA", "with XLA"]
figures.words(FOUND, COLUMNS, ("refused", "wrong"), "What does XLA do with it?")

# %% [markdown]
# ## Try other setups
#
# It fails under every strategy. With several mirrored devices the message changes.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy on both versions of Keras, on one mirrored device, and on two:

# %% tags=["table"]
one = session.setup.but(strategy="default", devices=1)
mirrored = one.but(strategy="mirrored")
other = one.but(keras=session.setup.other_keras)
session.table([one, other, mirrored, mirrored.but(devices=2)])

# %% [markdown]
# By TensorFlow's [documentation](https://www.tensorflow.org/api_docs/python/tf/config/set_soft_device_placement) soft device
# placement, which is on by default, lets operations without an XLA kernel run on the TPU's host. No TPU has run it here. The next
# cell asks the TPU compiler, or prints its record. The compiler gets what TensorFlow could translate. "says TensorFlow":
# TensorFlow refused first. Nothing is executed.

# %% tags=["tests"]
# The training loop that the reference of `TPUStrategy` prints, word for word; the compiler gets it below.
from strategy_clinic import build_strategy, compiler


def as_printed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(5,))])
        optimizer = tf.keras.optimizers.SGD(learning_rate=0.1)

    def dataset_fn(ctx):
        x = np.random.random((2, 5)).astype(np.float32)
        y = np.random.randint(2, size=(2, 1))
        dataset = tf.data.Dataset.from_tensor_slices((x, y))
        return dataset.repeat().batch(1, drop_remainder=True)

    dist_dataset = strategy.distribute_datasets_from_function(dataset_fn)
    iterator = iter(dist_dataset)

    @tf.function()
    def train_step(iterator):
        def step_fn(inputs):
            features, labels = inputs
            with tf.GradientTape() as tape:
                logits = model(features, training=True)
                loss = tf.keras.losses.sparse_categorical_crossentropy(labels, logits)
            grads = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(grads, model.trainable_variables))

        strategy.run(step_fn, args=(next(iterator),))

    train_step(iterator)
    return int(optimizer.iterations.numpy())


# %% tags=["compiled"]
# What the TPU compiler says of the metric in both programs, of the loop above, and of functions of one operation each.
MATRIX = tf.TensorSpec((4, 4))


def largest_in_tensorflow(x):
    return tf.reduce_max(tf.abs(x - 1.0))


def multiplies_whole_numbers(x):
    whole = tf.cast(x, tf.int64)
    return tf.matmul(whole, whole)


def transforms_doubles(x):
    return tf.math.real(tf.signal.fft(tf.cast(x, tf.complex128)))


def outgrows_a_core(x):
    large = tf.random.stateless_normal((60000, 60000), [1, 2]) * x[0, 0]
    return tf.reduce_sum(tf.matmul(tf.matmul(large, large), large))


COMPILED = {
    "broken": (calls_numpy, MATRIX),
    "fixed": (largest_in_tensorflow, MATRIX),
    "as_printed": as_printed,
} | {
    name: (function, MATRIX)
    for name, function in {
        **FUNCTIONS,
        "tf.matmul of int64": multiplies_whole_numbers,
        "tf.signal.fft of complex128": transforms_doubles,
        "60000 x 60000 matrices": outgrows_a_core,
    }.items()
}
compiler.show(session.mode, COMPILED, session.setup)

# %% [markdown]
# ## Exercise
#
# This compiled function raises nothing, and prints an empty list. Change it so that it prints `[ 1.  3.  6. 10.]` and is still
# compiled.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM07](fm07_python_in_traced_step.ipynb): Python that is not refused, and runs once per trace.
# - [FM16](fm16_tpu_eager_run.ipynb): why a TPU needs a traced step.
# - [FM43](fm43_retracing_every_step.ipynb): a step that is traced, and compiled, again and again.
# - What the reference of `TPUStrategy` says: [document 003](documents/003_tpu_strategy.ipynb).
