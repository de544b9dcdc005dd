# %% [markdown]
# # Document 000. What causes RuntimeError in TensorFlow's `get_weights()` during `strategy.run`?
#
# This answer from the web explains an error of `get_weights()` in the function that `strategy.run` calls. It makes 18 statements:
# each stands here in our words, with the verdict, the run that decides it, and the page about it.

# %% tags=["declaration"]
from strategy_clinic import Claim, Document

DOCUMENT = Document(
    id="000",
    title="What causes RuntimeError in TensorFlow's `get_weights()` during `strategy.run`?",
    claims=(
        Claim("000-C19", "fm01", "`get_weights()` in a traced `strategy.run` raises", "true"),
        Claim(
            "000-C5",
            "fm01",
            "under `MirroredStrategy` each replica holds its own copy of every variable",
            "true",
        ),
        Claim(
            "000-C2", "fm01", "it fails because the weights are not on the calling device", "false"
        ),
        Claim(
            "000-C10", "fm01", "training is asynchronous, which makes the error likelier", "false"
        ),
        Claim(
            "000-C11",
            "fm01",
            "reading in a function that the step calls raises the error, too",
            "true",
        ),
        Claim(
            "000-C1",
            "fm01",
            "reading weights before or after training, outside `strategy.run`, will likely fail",
            "false",
        ),
        Claim(
            "000-C12",
            "fm01",
            "how the copies are synchronized decides whether reading fails",
            "false",
        ),
        Claim("000-C13", "fm01", "the traceback does not show where the weights are read", "false"),
        Claim(
            "000-C3", "fm01", "the right place to read weights is inside `strategy.run`", "false"
        ),
        Claim("000-C14", "fm01", "variables are found by variable scopes and collections", "false"),
        Claim(
            "000-C8",
            "fm33",
            "closures that `tf.function` makes by mistake cause such errors",
            "half",
        ),
        Claim(
            "000-C6", "fm03", "a model and an optimizer made outside the scope train in it", "false"
        ),
        Claim("000-C15", "fm03", "its first example runs", "false"),
        Claim("000-C18", "fm03", "`strategy.run` gives each replica a part of `inputs`", "false"),
        Claim("000-C16", "fm03", "its second example prints the mean of the weights", "false"),
        Claim("000-C17", "fm03", "its third example runs", "false"),
        Claim(
            "000-C4",
            "fm02",
            "reducing `get_weights()` inside the replica function is correct",
            "false",
        ),
        Claim(
            "000-C7",
            "fm04",
            "`save_weights` to a bare path, then `load_weights`, gives the weights outside `run`",
            {2: "true", 3: "false"},
        ),
        Claim("000-C9", "fm04", "saving weights during distributed training is safe", "half"),
    ),
)

# %% tags=["parameters"]
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

document = clinic.document("000", keras)

# %% [markdown] tags=["statements"]
# ## The statements
#
# The verdict is that of Keras 3; where Keras 2 differs, both are named. "True in part", or *half*: some runs agree with the
# statement, and others do not.

# %% [markdown] tags=["section"]
# fm01

# %% tags=["claims"]
# Tests reading before and after a step, on one device and on two, and compares the copies after a step and after `fit`.
session = document.page("fm01")
# from fm01: READS, build_strategy, in_step, make_model, one, tf, two, works

import traceback
import numpy as np
from strategy_clinic.programs.variable_copies import values_of


def trained(setup):
    """A model after one step on data that differs from replica to replica."""
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
        optimizer = tf.keras.optimizers.SGD(0.25)
        optimizer.build(model.trainable_variables)

    def step():
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tf.ones((4, 1)) * (1.0 + tf.cast(replica, tf.float32))))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    @tf.function
    def train_step():
        strategy.run(step)

    train_step()
    return model


def reads_the_weights(model):
    """What a step may call to read the weights."""
    return model.get_weights()


def shows_the_function(setup):
    """Whether the traceback of the error in a traced step shows this cell's function."""
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
    try:
        tf.function(strategy.run)(reads_the_weights, args=(model,))
    except (RuntimeError, NotImplementedError) as error:
        return "reads_the_weights" in "".join(traceback.format_exception(error))
    return False


def reading_works(synchronization, traced):
    """Whether a step reads a variable whose copies are synchronized in this way."""
    strategy = build_strategy(two)
    with strategy.scope():
        mean = tf.VariableAggregation.MEAN
        variable = tf.Variable(1.0, synchronization=synchronization, aggregation=mean)
    once = tf.function(strategy.run) if traced else strategy.run
    return works(once, variable.numpy)


def collected():
    """The variables that a collection has after one was created in a variable scope."""
    with tf.compat.v1.variable_scope("one"):
        tf.Variable(1.0, name="here")
    return tf.compat.v1.global_variables()


get_weights = READS["model.get_weights()"]
model = trained(two)
WAYS = [getattr(tf.VariableSynchronization, name) for name in ("AUTO", "ON_WRITE", "ON_READ")]
parts = [values_of(weight) for weight in model.trainable_variables]
equal = [np.array_equal(part[0], each) for part in parts for each in part]

# %% [markdown] tags=["decided"]
# 000-C19

# %%
document.judges(
    {
        "000-C19": [not in_step(setup, get_weights, True) for setup in (one, two)],
    },
)

# %% [markdown] tags=["decided"]
# 000-C5

# %%
document.judges(
    {
        "000-C5": [all(len(part) == 2 for part in parts), *equal],
    },
)

# %% [markdown] tags=["decided"]
# 000-C2

# %%
document.judges(
    {
        # One device holds all weights.
        "000-C2": [
            in_step(setup, get_weights, True)
            for setup in (one, two.but(strategy="one_device", devices=1))
        ],
    },
)

# %% [markdown] tags=["decided"]
# 000-C10

# %%
document.judges(
    {
        # The copies would differ after a step, or one replica would not be enough.
        "000-C10": [not all(equal), in_step(one, get_weights, True)],
    },
)

# %% [markdown] tags=["decided"]
# 000-C11

# %%
document.judges(
    {
        "000-C11": [not in_step(two, reads_the_weights, True)],
    },
)

# %% [markdown] tags=["decided"]
# 000-C1

# %%
document.judges(
    {
        # Read here, outside of the scope: where the document expects the error.
        "000-C1": [not works(get_weights, make_model()), not works(get_weights, model)],
    },
)

# %% [markdown] tags=["decided"]
# 000-C12

# %%
document.judges(
    {
        "000-C12": [
            len({reading_works(way, traced) for way in WAYS}) > 1 for traced in (False, True)
        ],
    },
)

# %% [markdown] tags=["decided"]
# 000-C13

# %%
document.judges(
    {
        "000-C13": [not shows_the_function(setup) for setup in (one, two)],
    },
)

# %% [markdown] tags=["decided"]
# 000-C3

# %%
document.judges(
    {
        "000-C3": [in_step(two, get_weights, True)],
    },
)

# %% [markdown] tags=["decided"]
# 000-C14

# %%
document.judges(
    {
        "000-C14": [bool(collected())],
    },
)

# %% [markdown] tags=["section"]
# fm33

# %% tags=["claims"]
# Closures around a tensor of another graph, in a function and in a nested one, and around a variable that two replicas share.
session = document.page("fm33")
# from fm33: error_of, in_function, in_list, tf, two
from strategy_clinic import build_strategy


def nested():
    return tf.function(lambda: in_function(in_list()))()


def trains_variable_of_closure():
    distributed = build_strategy(two)
    with distributed.scope():
        total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)

    @tf.function
    def step():
        distributed.run(lambda: total.assign_add(tf.ones([])))

    step()
    return float(total.read_value()) == distributed.num_replicas_in_sync


# %% [markdown] tags=["decided"]
# 000-C8

# %%
document.judges(
    {
        "000-C8": [
            error_of(in_function, in_list()) == "TypeError",
            error_of(lambda kept: nested(), None) == "InaccessibleTensorError",
            not trains_variable_of_closure(),
        ],
    },
)

# %% [markdown] tags=["section"]
# fm03

# %% tags=["claims"]
# Tests the order of the first document in a loop, and an optimizer, a metric and `compile` outside the scope.
session = document.page("fm03")
# from fm03: one, two

import tensorflow as tf
from strategy_clinic import build_strategy


def make_model():
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
    return tf.keras.Sequential([tf.keras.Input((1,)), dense])


def trains(strategy, build):
    """Whether a model and an optimizer from outside the scope train in it, in the document's order of things."""
    model, optimizer = make_model(), tf.keras.optimizers.Adam(0.1)
    if build:
        optimizer.build(model.trainable_variables)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(tf.ones((8, 1)))))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    @tf.function
    def train_step():
        strategy.run(step)

    try:
        with strategy.scope():
            optimizer.build(model.trainable_variables)  # not in a replica: see FM32
            train_step()
    except (ValueError, RuntimeError, AssertionError):
        return False
    return True


# The three examples as printed, with a model, data, and two devices for what they leave open.
OPEN = """strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
inputs, labels = tf.ones((8, 4)), tf.one_hot(tf.range(8) % 3, 3)


def train_step(inputs, labels, model):
  with tf.GradientTape() as tape:
    predictions = model(inputs)
    loss = tf.keras.losses.categorical_crossentropy(labels, predictions)

  gradients = tape.gradient(loss, model.trainable_variables)
  optimizer.apply_gradients(zip(gradients, model.trainable_variables))
"""
REDUCED = """  weights = strategy.reduce(tf.distribute.ReduceOp.MEAN, model.get_weights(), axis=None)
  return weights
"""
MODEL = """
model = tf.keras.models.Sequential([
    tf.keras.Input((4,)), tf.keras.layers.Dense(3, activation="softmax")])
optimizer = tf.keras.optimizers.Adam()
"""
LOOP = """with strategy.scope():
    for epoch in range(10):
        {}strategy.run(train_step, args=(inputs, labels, model))
"""
SECOND = """        print(f"Epoch {epoch}: Aggregated Weights = {weights}")
"""
THIRD = """        model.save_weights('./my_checkpoint')

model.load_weights('./my_checkpoint')
weights = model.get_weights()
"""
PRINTED = {
    "without the loop": OPEN + MODEL,
    "000-C15": OPEN + MODEL + "weights_before = model.get_weights()\n" + LOOP.format(""),
    "000-C16": OPEN + REDUCED + MODEL + LOOP.format("weights = ") + SECOND,
    "000-C17": OPEN + MODEL + LOOP.format("") + THIRD,
}
STRATEGY = 'strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])\n'
HEAD = session.texts["broken"].partition(STRATEGY)[0]
examples = {name: f"{HEAD}{text}print('it ran')\n" for name, text in PRINTED.items()}
ran = session.prints(examples, [two])
assert ran.pop("without the loop") == ["it ran"]
print("the three examples:", ", ".join(words[0] for words in ran.values()))
pair = build_strategy(two)
sizes = pair.run(lambda inputs: tf.shape(inputs)[0], args=(tf.ones((8, 4)),))

# %% [markdown] tags=["decided"]
# 000-C6, 000-C15

# %%
document.judges(
    {
        "000-C6": [
            trains(build_strategy(setup), build) for setup in (one, two) for build in (False, True)
        ],
        "000-C15": [ran["000-C15"][0].endswith("it ran")],
    },
)

# %% [markdown] tags=["decided"]
# 000-C18

# %%
document.judges(
    {
        "000-C18": [int(size) < 8 for size in pair.experimental_local_results(sizes)],
    },
)

# %% [markdown] tags=["decided"]
# 000-C16

# %%
document.judges(
    {
        "000-C16": [ran["000-C16"][0].endswith("it ran")],
    },
)

# %% [markdown] tags=["decided"]
# 000-C17

# %%
document.judges(
    {
        "000-C17": [ran["000-C17"][0].endswith("it ran")],
    },
)

# %% [markdown] tags=["section"]
# fm02

# %% tags=["claims"]
# Tests the last line of the document's second example, with the weights and with tensors, on two devices and on one.
session = document.page("fm02")
# from fm02: build_strategy, in_both_places, one, tf, two


def weights(model):
    return model.get_weights()


def tensors(model):
    return [tf.identity(weight) for weight in model.trainable_variables]


def reduction_works(setup, values_of):
    """Whether the line works in an eager `strategy.run`, on a model created in the scope."""
    strategy = build_strategy(setup)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])

    def reduce(strategy, _):
        return [strategy.reduce("MEAN", each, axis=None) for each in values_of(model)]

    return in_both_places(reduce, strategy)[1]


# %% [markdown] tags=["decided"]
# 000-C4

# %%
document.judges(
    {
        "000-C4": [
            reduction_works(each, values_of)
            for each in (two, one)
            for values_of in (weights, tensors)
        ],
    },
)

# %% [markdown] tags=["section"]
# fm04

# %% tags=["claims"]
# Saves between steps and in a step under two devices, and by the callback, each to a path with and without the ending.
session = document.page("fm04")
# from fm04: make_model, mirrored, same_weights, tempfile, tf

from strategy_clinic import build_strategy


def done(save, *arguments):
    """Does saving work, and do the weights come back?"""
    try:
        return save(*arguments)
    except (ValueError, NotImplementedError):
        return False


def make_two(strategy):
    """The model to train, with the step that trains it, and one for the weights to come back to."""
    with strategy.scope():
        model, again = make_model(), make_model()
        optimizer = tf.keras.optimizers.SGD(0.1)
        optimizer.build(model.trainable_variables)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(tf.ones((4, 3)))))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    return model, again, tf.function(lambda: strategy.run(step))


def between_steps(path):
    """As the document's third example does it: after each step, on the host."""
    model, again, train = make_two(build_strategy(mirrored))
    for _ in range(2):
        train()
        model.save_weights(path)
    again.load_weights(path)
    return same_weights(model, again)


def in_a_step(path, trace):
    strategy = build_strategy(mirrored)
    model, again, _ = make_two(strategy)

    def step():
        model.save_weights(path)

    strategy.run(trace(step))
    again.load_weights(path)
    return same_weights(model, again)


folder = tempfile.TemporaryDirectory()
good, bad = f"{folder.name}/my.weights.h5", f"{folder.name}/my_checkpoint"

# %% [markdown] tags=["decided"]
# 000-C7, 000-C9

# %%
document.judges(
    {
        "000-C7": [done(between_steps, bad)],
        "000-C9": [
            done(between_steps, good),
            done(in_a_step, good, lambda step: step),
            done(in_a_step, good, tf.function),
        ],
    },
)

# %% [markdown]
# ## All verdicts
#
# How many statements have which verdict here. This cell fails if a claim that is declared has not been judged above.

# %%
document.verdicts()
