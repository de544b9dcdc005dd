# %% [markdown]
# # FM24. A compiled step holds something that XLA cannot compile
#
# A step has run for months. Somebody adds `jit_compile=True` to make it faster, or moves the program to a TPU, where everything
# is compiled, and it raises: `Detected unsupported operations when trying to compile graph`.
#
# ```text
# InvalidArgumentError: Detected unsupported operations when trying to compile graph gradient on XLA_CPU_JIT: PyFunc (No registered 'PyFunc' OpKernel for XLA_CPU_JIT devices)
# ```
#
# *Loud under every strategy, once it is compiled; what grows while it runs can be silent. From document 003.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm24",
    slug="xla_refuses",
    title="A compiled step holds something that XLA cannot compile",
    sees="`Detected unsupported operations when trying to compile graph`, or `must be a compile-time constant`",
    fix="write the step in TensorFlow operations of a known size, and leave Python, text and printing outside",
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
import helpers

clinic = helpers.open("fm24", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# Outliers should count less, and the weight that they get is two lines of NumPy that somebody has tested well. `numpy_function`
# puts them into the step, `tf.function` traces around them, and every strategy trains. You conclude that whatever can be traced
# can be compiled.

# %%
import warnings

import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, compiler, experiment, figures, runner

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


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# Tracing writes a graph down, and a graph may hold a node that calls Python, prints, or handles text: a CPU or a GPU runs it node
# by node. XLA turns the whole graph into one piece of machine code, for shapes that are fixed. What has no translation is
# refused by name, and so is a size that is known only later. On a TPU everything in `strategy.run` is compiled, whether you
# asked for it or not.
#
# The picture runs small functions as they are, compiled for this CPU, and, from a record, for a TPU. Two things in it are not
# in the error message: a list that *grows* is compiled to an empty one without a word, and some of what a CPU takes, a TPU does
# not. See [XLA's known issues](https://www.tensorflow.org/xla/known_issues).


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
ON_A_TPU = compiler.recorded(clinic.mode)
FOUND = {
    function.__name__.replace("_", " "): [
        "runs",
        on_this_cpu(function),
        WORDS.get(ON_A_TPU.get(function.__name__), "unknown"),
    ]
    for function in FUNCTIONS
}
COLUMNS = ["as it is", "XLA,\nthis CPU", "TPU v5e,\nrecorded"]
figures.words(FOUND, COLUMNS, ("refused", "wrong"), "What happens to a function that is compiled?")

# %% [markdown]
# ## The fix
#
# Say the same in TensorFlow's operations, as here. What has to stay Python, such as a print or a file, goes outside the compiled
# function: return the value and handle it there. The proof compares the weights of all replicas with those of NumPy.


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


clinic.proves(fixed)

# %%
one = clinic.setup.but(strategy="default", devices=1)
mirrored, traced = (one.but(strategy=name, devices=8) for name in ("mirrored", "tpu_traced"))
SETUPS = [
    one,
    mirrored,
    mirrored.but(keras=clinic.setup.other_keras),
    traced,
    traced.but(keras=clinic.setup.other_keras),
]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# No strategy changes anything: the failure comes with `jit_compile=True` and goes with it. Under `tpu_traced` the step is
# *emulated*, and what is compiled in it is compiled for this CPU; on an attached TPU all of it is compiled for that.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 003, the reference of `TPUStrategy`, prints a training loop. Here it is, word for word, on a described TPU: its graph
# is traced by TensorFlow's own class and emulated on CPU devices, and the record says that the compiler takes it.
#
# It runs, and is not worth copying: its loss takes the outputs of a linear layer for probabilities, since nobody said
# `from_logits=True`.
#
# The cell after that asks the TPU compiler itself, where it is installed: about one core of a TPU v5e for a function, about eight
# for a step. Elsewhere it says how to get it, and what is recorded.


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
clinic.judges(
    {"003-C33": [steps == 1, ON_A_TPU.get("as_printed") != "raises"]},
    evidence="emulated",
)

# %% tags=["compiled"]
MATRIX = tf.TensorSpec((4, 4))
COMPILED = {"as_printed": as_printed} | {
    function.__name__: (function, MATRIX) for function in (*FUNCTIONS, outgrows_a_core)
}
compiler.show(clinic.mode, {"broken": broken, "fixed": fixed} | COMPILED, clinic.setup)

# %% [markdown]
# ## Exercise
#
# The spread of a batch is the determinant of its covariance. The step is correct, and XLA has no translation for one of its
# operations. Change it so that it compiles, and stays a compiled function.


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


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    @tf.function(jit_compile=True)
    def spread(data):
        centred = data - tf.reduce_mean(data, axis=0)
        covariance = tf.matmul(centred, centred, transpose_a=True) / BATCH
        # A covariance has a Cholesky factor, which has a translation.
        return tf.exp(tf.linalg.logdet(covariance))

    want = np.linalg.det(np.cov(examples().T, bias=True))
    return Proof("the spread is that of NumPy", [spread(examples())], [want], tolerance=1e-4)


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm07 python_in_traced_step](fm07_python_in_traced_step.ipynb): Python that is not refused, and runs only once.
# - [fm16 tpu_eager_run](fm16_tpu_eager_run.ipynb): why a TPU wants a traced step in the first place.
# - [fm22 non_tensor_in_run](fm22_non_tensor_in_run.ipynb): what may come out of a traced step.
