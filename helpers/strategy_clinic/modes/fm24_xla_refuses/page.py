# %% [markdown]
# # FM24. A compiled step holds something that XLA cannot compile
#
# A step has trained for months. Somebody adds `jit_compile=True` to make it faster, and it raises.
#
# ```text
# InvalidArgumentError: Detected unsupported operations when trying to compile graph … on XLA_CPU_JIT: PyFunc
# (No registered 'PyFunc' OpKernel for XLA_CPU_JIT devices)
# ```
#
# *Loud under every strategy, as soon as the function is compiled. A list that grows in a loop is silent. The document is the
# reference of `tf.distribute.TPUStrategy` (003).*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm24",
    slug="xla_refuses",
    title="A compiled step holds something that XLA cannot compile",
    sees="`Detected unsupported operations when trying to compile graph`, or `must be a compile-time constant`",
    fix="write the compiled function in TensorFlow operations of a known size; keep Python, text and printing outside",
    document="003",
    switches=("strategy",),
    symptoms=(
        Symptom(
            "InvalidArgumentError",
            r"Detected unsupported operations when trying to compile graph",
        ),
    ),
    claims=(
        Claim("003-C33", "the training loop that the reference prints runs as printed", "true"),
    ),
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm24", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# Outliers should count less, and the weight that they get is two lines of tested NumPy. `numpy_function` puts them into the
# step. `tf.function` traces it and every strategy trains with it. You believe that whatever can be traced can be compiled.

# %%
import warnings

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, compiler, experiment, figures, runner

BATCH, RATE = 16, 0.1


def examples():
    return np.random.default_rng(0).normal(size=(BATCH, 3)).astype("float32")


def trust(error):
    """How much an example counts, in NumPy: less, the further off it is."""
    return 1 / np.maximum(1, np.abs(error))


def train_once(setup, gradient):
    """One step of all replicas: its own part of the batch for each, and the sum of their gradients."""
    strategy = build_strategy(setup)
    with strategy.scope():
        weights = tf.Variable(tf.zeros((3, 1)), aggregation=tf.VariableAggregation.SUM)

    def step():
        context = tf.distribute.get_replica_context()
        each = BATCH // context.num_replicas_in_sync
        mine = tf.slice(examples(), [context.replica_id_in_sync_group * each, 0], [each, 3])
        weights.assign_sub(RATE * gradient(weights.read_value(), mine))

    runner(strategy)(step)
    return [part.numpy() for part in strategy.experimental_local_results(weights)]


def by_hand():
    """The same step in NumPy, with weights of zero, where every error is -1."""
    error = -np.ones((BATCH, 1), "float32")
    return -RATE * examples().T @ (error * trust(error)) / BATCH


# %%
@experiment
def broken(setup):
    @tf.function(jit_compile=True)
    def gradient(weights, mine):
        error = tf.matmul(mine, weights) - 1.0
        counts = tf.numpy_function(trust, [error], tf.float32)  # guilty: a compiler has no Python
        return tf.ensure_shape(tf.matmul(mine, error * counts, transpose_a=True) / BATCH, (3, 1))

    got = train_once(setup, gradient)
    return Proof("every copy of the weights is that of NumPy", got, [by_hand()] * len(got))


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# Tracing records operations in a graph. A CPU or GPU runs a graph operation by operation, and one of them may call Python.
# XLA compiles the whole graph to machine code for fixed shapes. `jit_compile=True` refuses an operation without an XLA kernel,
# and a size that is not known when it compiles. A list that *grows* in a loop is worse: on this CPU the compiled one is empty.
#
# `TPUStrategy.run` is another case. Soft device placement is on by default in TensorFlow 2. It enables *automatic outside
# compilation*: operations without an XLA kernel run on the TPU's host, unless you call
# `tf.config.set_soft_device_placement(False)`. This is TensorFlow's documentation; no TPU has run it here.
#
# The last column is the TPU compiler's record. It is asked only about what TensorFlow has lowered, and its results are not run:
# grey says nothing about results. See
# [`set_soft_device_placement`](https://www.tensorflow.org/api_docs/python/tf/config/set_soft_device_placement).


# %%
def calls_numpy(x):
    return tf.numpy_function(np.tanh, [x], tf.float32)


def prints(x):
    tf.print("the sum is", tf.reduce_sum(x))
    return x + 1.0


def handles_text(x):
    return tf.strings.length(tf.strings.as_string(x))


def counts_up_to_a_result(x):
    return tf.range(tf.random.uniform([], 3, 4, tf.int32)) + tf.cast(x[0, 0], tf.int32)


def grows_a_list(x):
    listed = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for _ in tf.range(3):
        listed = listed.write(listed.size(), x)
    return listed.stack()


def keeps_what_is_large(x):
    return tf.boolean_mask(x, x > 3.0)


def multiplies_whole_numbers(x):
    whole = tf.cast(x, tf.int64)
    return tf.matmul(whole, whole)


def transforms_doubles(x):
    return tf.math.real(tf.signal.fft(tf.cast(x, tf.complex128)))


def outgrows_a_core(x):
    large = tf.random.stateless_normal((60000, 60000), [1, 2]) * x[0, 0]
    return tf.reduce_sum(tf.matmul(tf.matmul(large, large), large))


FUNCTIONS = (
    calls_numpy,
    prints,
    handles_text,
    counts_up_to_a_result,
    grows_a_list,
    keeps_what_is_large,
    multiplies_whole_numbers,
    transforms_doubles,
)


def on_this_cpu(function):
    """In one word, what compiling changes."""
    x = tf.reshape(tf.range(16.0), (4, 4))
    plain = tf.function(function)(x).numpy()
    try:
        fast = tf.function(function, jit_compile=True)(x).numpy()
    except tf.errors.InvalidArgumentError:
        return "refused"
    return "runs" if np.array_equal(plain, fast) else "wrong"


WORDS = {"works": "compiles", "raises": "refused"}
ON_A_TPU = compiler.recorded(session.mode)


def by_the_tpu_compiler(function, here):
    """What TensorFlow does not lower, on this CPU, never gets to the TPU compiler."""
    recorded = WORDS.get(ON_A_TPU.get(function.__name__), "unknown")
    return "not asked" if here == "refused" else recorded


FOUND = {}
for function in FUNCTIONS:
    here = on_this_cpu(function)
    row = ["runs", here, by_the_tpu_compiler(function, here)]
    FOUND[function.__name__.replace("_", " ")] = row

COLUMNS = ["not compiled", "XLA on\nthis CPU", "TPU compiler,\nrecorded"]
COLOURS = {"runs": figures.HAVE, "refused": figures.LACK, "wrong": figures.LACK}
TITLE = "One function each (grey: no result)"
figure, axes = figures.canvas(5.4, 3.9)
for y, row in enumerate(FOUND.values()):
    for x, word in enumerate(row):
        axes.barh(y, 0.92, height=0.8, left=x - 0.46, color=COLOURS.get(word, figures.INK))
        axes.text(x, y, word, ha="center", va="center", color="white", fontsize=9)
figures.name_axes(axes, list(FOUND), COLUMNS, TITLE)
named = [column.replace("\n", " ") for column in COLUMNS]
told = {row: ", ".join(map(": ".join, zip(named, found))) for row, found in FOUND.items()}
figures.as_picture(figure, "\n".join(f"{row}: {text}" for row, text in told.items()))

# %% [markdown]
# ## The fix
#
# Write the same in TensorFlow's operations. What has to stay Python, such as a print or a file, goes outside the compiled
# function: return the value and handle it there. Before:
#
# ```python
# import numpy as np
# import tensorflow as tf
#
#
# @tf.function(jit_compile=True)
# def weighted(error):
#     trust = tf.numpy_function(lambda e: 1 / np.maximum(1, np.abs(e)), [error], tf.float32)
#     return error * trust
#
#
# weighted(tf.constant([0.5, -4.0]))  # InvalidArgumentError: Detected unsupported operations when trying to compile graph
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
#
# @tf.function(jit_compile=True)
# def weighted(error):
#     trust = 1 / tf.maximum(1.0, tf.abs(error))
#     return error * trust
#
#
# print(weighted(tf.constant([0.5, -4.0])).numpy())  # [ 0.5 -1. ]
# ```
#
# The proof compares the weights of all replicas with those of NumPy.


# %%
@experiment
def fixed(setup):
    @tf.function(jit_compile=True)
    def gradient(weights, mine):
        error = tf.matmul(mine, weights) - 1.0
        counts = 1 / tf.maximum(1.0, tf.abs(error))  # repair: operations that have a translation
        return tf.ensure_shape(tf.matmul(mine, error * counts, transpose_a=True) / BATCH, (3, 1))

    got = train_once(setup, gradient)
    return Proof("every copy of the weights is that of NumPy", got, [by_hand()] * len(got))


session.proves(fixed)

# %%
one = session.setup.but(strategy="default", devices=1)
mirrored, traced = (one.but(strategy=name, devices=8) for name in ("mirrored", "tpu_traced"))
SETUPS = [
    one,
    mirrored,
    mirrored.but(keras=session.setup.other_keras),
    traced,
]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Try any strategy: none changes anything, because the failure comes with `jit_compile=True`. Under `tpu_traced` the step is
# *emulated*, and the compiled function in it is compiled for this CPU.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The reference of `tf.distribute.TPUStrategy` (003) prints a training loop:
#
# > An example of writing customized training loop on TPUs:
#
# Here it is, word for word. `TPUStrategy` traces it for a described TPU, the trace runs on CPU devices, and the record says
# that the TPU compiler takes it: it runs as printed. Its loss takes the outputs of a linear layer for probabilities, because
# `from_logits=True` is missing.
#
# The second cell asks the TPU compiler where it is installed, and elsewhere prints the record. "says TensorFlow" marks what
# TensorFlow refused to lower on the CPU (`XLA_CPU_JIT`), before the TPU compiler was asked.


# %% tags=["claims"]
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


with warnings.catch_warnings(action="ignore"):  # Keras 3 wants an `Input`, and makes one
    steps = as_printed(traced)
session.judges(
    {"003-C33": [steps == 1, ON_A_TPU.get("as_printed") != "raises"]},
    evidence="emulated",
)

# %% tags=["compiled"]
MATRIX = tf.TensorSpec((4, 4))
COMPILED = {"as_printed": as_printed} | {
    function.__name__: (function, MATRIX) for function in (*FUNCTIONS, outgrows_a_core)
}
compiler.show(session.mode, {"broken": broken, "fixed": fixed} | COMPILED, session.setup)

# %% [markdown]
# ## Exercise
#
# The spread of a batch is the determinant of its covariance. The step is correct, and XLA has no kernel for one of its
# operations. Change it so that it stays a compiled function. A covariance is positive definite, and `tf.linalg.logdet` is made
# for such a matrix. (The nightly of October 2026, TensorFlow 2.23, has that kernel: there it is green before you begin.)


# %% tags=["exercise"]
@experiment
def attempt(setup):
    @tf.function(jit_compile=True)
    def spread(data):
        centred = data - tf.reduce_mean(data, axis=0)
        covariance = tf.matmul(centred, centred, transpose_a=True) / BATCH
        return tf.linalg.det(covariance)

    want = np.linalg.det(np.cov(examples().T, bias=True))
    return Proof("the spread is that of NumPy", [spread(examples())], [want], tolerance=1e-4)


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    @tf.function(jit_compile=True)
    def spread(data):
        centred = data - tf.reduce_mean(data, axis=0)
        covariance = tf.matmul(centred, centred, transpose_a=True) / BATCH
        # A covariance has a Cholesky factor, for which XLA has a kernel.
        return tf.exp(tf.linalg.logdet(covariance))

    want = np.linalg.det(np.cov(examples().T, bias=True))
    return Proof("the spread is that of NumPy", [spread(examples())], [want], tolerance=1e-4)


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm07 python_in_traced_step](fm07_python_in_traced_step.ipynb): Python that is not refused, and runs once per trace.
# - [fm16 tpu_eager_run](fm16_tpu_eager_run.ipynb): why a TPU needs a traced step.
# - [fm22 non_tensor_in_run](fm22_non_tensor_in_run.ipynb): what may come out of a traced step.
