# %% [markdown]
# # Document 002. How can inconsistent trainable variables be addressed when accumulating gradients in TensorFlow?
#
# This answer from the web explains why gradients that are added over several batches do not fit the variables. It makes 10
# statements: each stands here in our words, with the verdict, the run that decides it, and the page about it.

# %% tags=["declaration"]
from strategy_clinic import Claim, Document

DOCUMENT = Document(
    id="002",
    title="How can inconsistent trainable variables be addressed when accumulating gradients in TensorFlow?",
    claims=(
        Claim(
            "002-C9",
            "fm15",
            "ten small batches need less memory than one batch of all examples",
            "half",
        ),
        Claim(
            "002-C3",
            "fm15",
            "summing the gradients of ten batches equals one larger batch",
            "false",
        ),
        Claim(
            "002-C1",
            "fm12",
            "different names make separate variables, and consistent naming prevents it",
            "false",
        ),
        Claim("002-C4", "fm12", "variables made in the loop prevent accumulation", "true"),
        Claim(
            "002-C5", "fm13", "creating variables by condition makes the accumulation fail", "true"
        ),
        Claim("002-C6", "fm13", "the tape sees only what took part in that forward pass", "true"),
        Claim(
            "002-C7", "fm14", "copies that are meant to be shared lose part of the gradient", "true"
        ),
        Claim(
            "002-C8",
            "fm11",
            "using `model.trainable_variables` throughout guarantees consistency",
            "half",
        ),
        Claim("002-C2", "fm11", "its first example accumulates gradients correctly", "false"),
    ),
)

# %% tags=["parameters"]
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

document = clinic.document("002", keras)

# %% [markdown] tags=["statements"]
# ## The statements
#
# The verdict is that of Keras 3; where Keras 2 differs, both are named. "True in part", or *half*: some runs agree with the
# statement, and others do not.

# %% [markdown] tags=["section"]
# fm15

# %% tags=["claims"]
# What `assign` of a number raises, and summed gradients of ten batches, in gradients of the mean loss of all their examples.
session = document.page("fm15")

import tensorflow as tf

rows = tf.random.stateless_normal((40, 3), seed=(0, 0))
weights = tf.Variable(tf.fill((3, 1), 0.5))


def gradient_of(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(batch @ weights - 1.0))
    return tape.gradient(loss, weights)


summed, large = tf.add_n([gradient_of(part) for part in tf.split(rows, 10)]), gradient_of(rows)


def step_bytes(width, examples, accumulate):
    """The bytes of the tensors in a traced training step of three dense layers, and of the variables for the sums."""
    kernels = [tf.Variable(tf.fill((width, width), 0.01)) for _ in range(3)]
    sums = [tf.Variable(tf.zeros_like(kernel)) for kernel in kernels] if accumulate else []

    @tf.function
    def step(batch):
        with tf.GradientTape() as tape:
            hidden = batch
            for kernel in kernels:
                hidden = tf.nn.relu(hidden @ kernel)
            loss = tf.reduce_mean(tf.square(hidden))
        for target, gradient in zip(sums or kernels, tape.gradient(loss, kernels)):
            target.assign_add(gradient)

    graph = step.get_concrete_function(tf.TensorSpec((examples, width))).graph
    tensors = [output for op in graph.get_operations() for output in op.outputs] + sums
    return sum(
        tensor.shape.num_elements() * tensor.dtype.size
        for tensor in tensors
        if tensor.dtype == tf.float32
    )


# Width of the layers, and examples of one of ten batches.
BYTES = {
    (width, examples): (step_bytes(width, examples, True), step_bytes(width, 10 * examples, False))
    for width, examples in ((64, 8), (512, 1))
}
print("summed / large:", (summed / large).numpy().ravel().round(2))
print("bytes of one of ten batches with its sums, and of the large batch:", *BYTES.values())

# %% [markdown] tags=["decided"]
# 002-C9

# %%
document.judges(
    {
        "002-C9": [accumulated < whole for accumulated, whole in BYTES.values()],
    },
    evidence="traced",
)

# %% [markdown] tags=["decided"]
# 002-C3

# %%
document.judges(
    {
        "002-C3": [bool(tf.reduce_all(tf.abs(summed - large) < 1e-5))],
    },
)

# %% [markdown] tags=["section"]
# fm12

# %% tags=["claims"]
# That example with new names and with one name, variables of one name with three kinds of update, and eager `fit`.
session = document.page("fm12")

import numpy as np
import tensorflow as tf

RATE, BATCHES = 0.1, 3
UPDATE = {
    "optimizer": lambda: tf.keras.optimizers.SGD(RATE).apply_gradients,
    "by hand": lambda: lambda pairs: [v.assign_sub(RATE * g) for g, v in pairs],
    # An optimizer from before Keras 2, which keeps no list of its variables.
    "forgiving": lambda: tf.compat.v1.train.GradientDescentOptimizer(RATE).apply_gradients,
}


def batch(number):
    return np.random.default_rng(number).normal(size=(4, 1)).astype("float32")


def descended():
    """The factor after the same steps in NumPy."""
    factor = 1.0
    for number in range(BATCHES):
        factor = factor - RATE * 2 * (factor - 3.0) * np.mean(batch(number) ** 2)
    return factor


def learns(make, way, wrap=lambda step: step):
    """Trains what `make` gives for each batch: does the factor learn from all batches?"""
    update = UPDATE[way]()
    get = make()

    @wrap
    def step(data):
        factor = get()
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(data * factor - 3.0 * data))
        update([(tape.gradient(loss, factor), factor)])
        return tf.identity(factor)

    try:
        last = [step(tf.constant(batch(number))) for number in range(BATCHES)][-1]
    except (ValueError, KeyError):  # Keras 3 and Keras 2
        return False
    return bool(np.allclose(last, descended(), atol=1e-5))


def once():
    one = tf.Variable(1.0, name="factor")
    return lambda: one


def same_name():
    return lambda: tf.Variable(1.0, name="factor")


def new_names():
    count = iter(range(100))
    return lambda: tf.Variable(1.0, name=f"factor_{next(count)}")


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


# %% [markdown] tags=["decided"]
# 002-C1

# %%
document.judges(
    {
        "002-C1": [
            second_example("weight", "bias"),
            learns(same_name, "by hand", tf.function),
            two_of_one_name(),
        ],
    },
)

# %% [markdown] tags=["decided"]
# 002-C4

# %%
document.judges(
    {
        "002-C4": [
            not second_example("weight_{}", "bias_{}"),
            learns(once, "forgiving") and not learns(new_names, "forgiving"),
            learns(once, "by hand") and not learns(new_names, "by hand"),
        ],
    },
)

# %% [markdown] tags=["section"]
# fm13

# %% tags=["claims"]
# What the tape watches in each turn, and where an accumulation over weights of two shapes stops.
session = document.page("fm13")
# from fm13: checks

import tensorflow as tf

layers = [tf.keras.layers.Dense(1) for _ in range(2)]
for layer in layers:
    layer.build((None, 3))


def watched(layer):
    with tf.GradientTape() as tape:
        layer(tf.ones((1, 3)))
    return {id(variable) for variable in tape.watched_variables()}


def ids(layer):
    return {id(checks.variable_of(weight)) for weight in layer.trainable_variables}


def stops_at(shapes, columns):
    """Adds the gradients of weights that are created in every batch, and updates the last ones."""
    optimizer, totals, at = tf.keras.optimizers.SGD(0.01), None, ""
    try:
        for number in range(10):
            weight = tf.Variable(tf.ones((shapes[number % 2], 1)))
            bias = tf.Variable(tf.ones(1))
            at = "prediction"
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.matmul(tf.ones((4, columns[number % 2])), weight) + bias)
            at = "sum"
            found = tape.gradient(loss, [weight, bias])
            totals = found if totals is None else [a + b for a, b in zip(totals, found)]
            at = "update"
            optimizer.apply_gradients(zip(totals, [weight, bias]))
    except (tf.errors.InvalidArgumentError, ValueError, KeyError):
        return at
    return "nowhere"


# %% [markdown] tags=["decided"]
# 002-C5

# %%
document.judges(
    {
        "002-C5": [
            stops_at((10, 5), (10, 10)) == "prediction",  # the example of the document
            stops_at((10, 5), (10, 5)) == "sum",
            stops_at((10, 1), (10, 1)) == "update",  # the shapes broadcast
            stops_at((10, 10), (10, 10)) == "update",  # the optimizer does not know the variables
        ],
    },
)

# %% [markdown] tags=["decided"]
# 002-C6

# %%
document.judges(
    {
        "002-C6": [watched(layer) == ids(layer) for layer in layers],
    },
)

# %% [markdown] tags=["section"]
# fm14

# %% tags=["claims"]
# The gradient of one encoder beside those of an encoder and its copy.
session = document.page("fm14")

import tensorflow as tf

encoder, copied = (tf.Variable([[1.0]]) for _ in range(2))


def gradients_of(first, second, weights):
    with tf.GradientTape() as tape:
        loss = tf.square([[1.0]] @ first + [[2.0]] @ second)
    return [gradient.numpy().item() for gradient in tape.gradient(loss, weights)]


(whole,) = gradients_of(encoder, encoder, [encoder])
part, other = gradients_of(encoder, copied, [encoder, copied])
print(f"shared: {whole}, copies: {part} and {other}")

# %% [markdown] tags=["decided"]
# 002-C7

# %%
document.judges(
    {
        "002-C7": [whole == part + other, whole != part, whole != other],
    },
)

# %% [markdown] tags=["section"]
# fm11

# %% tags=["claims"]
# The first example of that answer as printed, whether a call changes the list of variables, and whether `fit` trains one.
session = document.page("fm11")
# from fm11: Model, tf


def first_example_runs():
    data = np.random.default_rng(0).normal(size=(10, 4, 3)).astype("float32")
    model = tf.keras.models.Sequential(
        [tf.keras.layers.Dense(10, activation="relu"), tf.keras.layers.Dense(1)]
    )
    optimizer = tf.keras.optimizers.SGD(learning_rate=0.01)
    try:
        accumulated_gradients = [tf.zeros_like(var) for var in model.trainable_variables]
        for each in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(each))
            batch_gradients = tape.gradient(loss, model.trainable_variables)
            for i, grad in enumerate(batch_gradients):
                accumulated_gradients[i] += grad
        optimizer.apply_gradients(zip(accumulated_gradients, model.trainable_variables))
    except (IndexError, ValueError):  # Keras 3: list index out of range; Keras 2: no weights yet
        return False
    return True


def list_stays_the_same(model):
    before = [id(variable) for variable in model.trainable_variables]
    model(tf.ones((1, 3)))
    return before == [id(variable) for variable in model.trainable_variables]


called = Model()
_ = called(tf.ones((1, 3)))

# %% [markdown] tags=["decided"]
# 002-C8

# %%
document.judges(
    {
        "002-C8": [list_stays_the_same(called), list_stays_the_same(Model())],
    },
)

# %% [markdown] tags=["decided"]
# 002-C2

# %%
document.judges(
    {
        "002-C2": [first_example_runs()],
    },
)

# %% [markdown]
# ## All verdicts
#
# How many statements have which verdict here. This cell fails if a claim that is declared has not been judged above.

# %%
document.verdicts()
