# %% [markdown]
# # Document 001. Why am I getting a Checkpointing error with apply_gradients()?
#
# This answer from the web explains errors of checkpoints by untracked variables, changed models and steps that are no graph. It
# makes 17 statements: each stands here in our words, with the verdict, the run that decides it, and the page about it.

# %% tags=["declaration"]
from strategy_clinic import Claim, Document

DOCUMENT = Document(
    id="001",
    title="Why am I getting a Checkpointing error with apply_gradients()?",
    claims=(
        Claim("001-C14", "fm05", "a checkpoint tracks tensors and operations", "false"),
        Claim(
            "001-C1", "fm05", "a variable outside the checkpoint is reinitialised on load", "true"
        ),
        Claim(
            "001-C13", "fm05", "temporary variables in helper functions are a silent cause", "true"
        ),
        Claim(
            "001-C15",
            "fm05",
            "a tensor in place of a temporary variable lets training resume",
            "true",
        ),
        Claim(
            "001-C2", "fm05", "applying gradients to an untracked variable raises an error", "false"
        ),
        Claim(
            "001-C4",
            "fm05",
            "a variable that gets gradients must be in the checkpoint, or an error follows",
            "half",
        ),
        Claim(
            "001-C3",
            "fm05",
            "its first example runs and writes a checkpoint",
            {2: "true", 3: "false"},
        ),
        Claim(
            "001-C5",
            "fm06",
            "a checkpoint might not load back the proper state after layers were added or removed",
            "true",
        ),
        Claim("001-C12", "fm06", "TensorFlow checkpoints need a static graph", "false"),
        Claim(
            "001-C7", "fm06", "a new model of the same name is what a checkpoint restores", "false"
        ),
        Claim("001-C16", "fm06", "its `create_model` builds a different model each time", "half"),
        Claim("001-C8", "fm07", "without `tf.function` checkpoints break", "false"),
        Claim(
            "001-C9", "fm07", "a loss that is not made of TensorFlow breaks checkpointing", "false"
        ),
        Claim(
            "001-C11",
            "fm09",
            "saving before applying the gradients saves a different model",
            "true",
        ),
        Claim(
            "001-C6", "fm08", "its second example fails because the architecture changed", "false"
        ),
        Claim("001-C10", "fm08", "its third example fails because of the loss function", "false"),
    ),
)

# %% tags=["parameters"]
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

document = clinic.document("001", keras)

# %% [markdown] tags=["statements"]
# ## The statements
#
# The verdict is that of Keras 3; where Keras 2 differs, both are named. "True in part", or *half*: some runs agree with the
# statement, and others do not.

# %% [markdown] tags=["section"]
# fm05

# %% tags=["claims"]
# Trains a variable that no checkpoint has, runs the document's first example, and saves layers in a list.
session = document.page("fm05")
# from fm05: KEPT

import tempfile
import tensorflow as tf


def make_model():
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
    return tf.keras.Sequential([tf.keras.Input((3,)), dense])


def trained_outside_the_checkpoint():
    """A variable that gets gradients and is in no checkpoint: is that refused, and is it reset by a restart?"""
    model, scale = make_model(), tf.Variable(1.0)
    optimizer = tf.keras.optimizers.Adam()
    pairs = [(tf.ones_like(tf.identity(weight)), weight) for weight in model.trainable_variables]
    try:
        optimizer.apply_gradients([*pairs, (tf.constant(1.0), scale)])
        refused = False
    except (ValueError, KeyError):
        refused = True
    trained = float(scale)
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=model).save(f"{folder}/training")
        model, scale = make_model(), tf.Variable(1.0)
        tf.train.Checkpoint(model=model).restore(path).assert_consumed()
    return refused, trained != 1.0 and float(scale) == 1.0


def resumes_with_a_tensor():
    """Whether training resumes where it was if a helper computes its value in each step, as a tensor."""

    def train(model, steps):
        data = tf.ones((4, 3))
        for _ in range(steps):
            with tf.GradientTape() as tape:
                size = tf.reduce_mean(tf.abs(model(data)))  # the temporary value
                loss = tf.reduce_mean(tf.square(model(data))) / tf.stop_gradient(size)
            variables = model.trainable_variables
            for variable, gradient in zip(variables, tape.gradient(loss, variables)):
                variable.assign(variable - 0.1 * gradient)

    model, whole, resumed = make_model(), make_model(), make_model()
    train(whole, 4)
    train(model, 2)
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=model).save(f"{folder}/training")
        tf.train.Checkpoint(model=resumed).restore(path).assert_consumed()
    train(resumed, 2)
    return bool(tf.reduce_all(whole.get_weights()[0] == resumed.get_weights()[0]))


class Tracked(tf.Module):
    """A tensor, a function and a variable, each as an attribute."""

    def __init__(self):
        super().__init__()
        self.a_tensor, self.a_variable = tf.constant(1.0), tf.Variable(1.0)
        self.an_operation = tf.function(tf.square)


class FirstExample(tf.keras.Model):
    """The model of the document's first example, as printed there."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.random.normal((1,)), name="w")
        self.b = tf.Variable(tf.zeros((1,)), name="b")

    def call(self, x):
        return x * self.w + self.b


def first_example_runs():
    """Whether five steps of the first example run, with its variable beside the model, and write a checkpoint."""
    model, optimizer = FirstExample(), tf.keras.optimizers.Adam()
    untracked_var = tf.Variable(1.0, name="untracked")

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            logits = model(x)
            loss = tf.reduce_mean(tf.square(logits - y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        untracked_var.assign_add(1.0)
        return loss

    x_data, y_data = tf.random.normal((10, 1)), tf.random.normal((10, 1))
    try:
        for _ in range(5):
            train_step(x_data, y_data)
    except ValueError:  # Keras 3: not enough values to unpack, as there are no variables
        return False
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=model, optimizer=optimizer).save(f"{folder}/first")
        return bool(path) and float(untracked_var) == 6.0


def names_in_checkpoint(**objects):
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(**objects).save(f"{folder}/names")
        return " ".join(name for name, _ in tf.train.list_variables(path))


refused, forgotten = trained_outside_the_checkpoint()
model, helper = make_model(), tf.Variable(0.0, name="helper")
tracked = names_in_checkpoint(tracked=Tracked())
assert "a_variable" in tracked

# %% [markdown] tags=["decided"]
# 001-C14

# %%
document.judges(
    {
        "001-C14": [name in tracked for name in ("a_tensor", "an_operation")],
    },
)

# %% [markdown] tags=["decided"]
# 001-C1, 001-C13

# %%
document.judges(
    {
        "001-C1": [KEPT["a variable of the script"][0] == "lost"],
        "001-C13": [
            "helper" not in names_in_checkpoint(model=model),
            "helper" in names_in_checkpoint(model=model, helper=helper),
        ],
    },
)

# %% [markdown] tags=["decided"]
# 001-C15

# %%
document.judges(
    {
        "001-C15": [resumes_with_a_tensor()],
    },
)

# %% [markdown] tags=["decided"]
# 001-C2

# %%
document.judges(
    {
        "001-C2": [refused],
    },
)

# %% [markdown] tags=["decided"]
# 001-C4

# %%
document.judges(
    {
        "001-C4": [refused, forgotten],
    },
)

# %% [markdown] tags=["decided"]
# 001-C3

# %%
document.judges(
    {
        "001-C3": [first_example_runs()],
    },
)

# %% [markdown] tags=["section"]
# fm06

# %% tags=["claims"]
# Tests an inserted layer, a model that chooses its layers in Python, and a checkpoint whose model's name is given to a new one.
session = document.page("fm06")
# from fm06: OUTCOMES, same_weights

import itertools
import warnings
import tensorflow as tf

X = tf.constant([[0.5], [-1.0]])


class Undecided(tf.keras.Model):
    """Calls one layer or the other, decided in Python; there is no graph at all."""

    def __init__(self):
        super().__init__()
        self.left = tf.keras.layers.Dense(1)
        self.right = tf.keras.layers.Dense(1)

    def build(self, input_shape):
        self.left.build(input_shape)
        self.right.build(input_shape)
        self.built = True

    def call(self, inputs, turn=0):
        return self.left(inputs) if turn % 2 == 0 else self.right(inputs)


def undecided():
    model = Undecided()
    for turn in range(2):
        model(X, turn=turn)
    return model


def graphless_model_fails():
    """Whether a model without a graph loses a weight on its way through a checkpoint."""
    first, second = undecided(), undecided()
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=first).save(f"{folder}/training")
        tf.train.Checkpoint(model=second).restore(path).assert_consumed()
    return not same_weights(first.get_weights(), second.get_weights())


def new_model_is_restored():
    """Whether a checkpoint restores into the model that has taken over the name of its first one."""
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(4)])
    checkpoint = tf.train.Checkpoint(model=model)
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint.save(f"{folder}/training")
        saved = model.get_weights()
        model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(4)])
        checkpoint.restore(path)
    return same_weights(saved, model.get_weights())


# this function can generate an issue
def create_model(input_shape):
    # the model is randomly being built differently each time
    if tf.random.uniform((1,)).numpy() < 0.5:
        layers = [
            tf.keras.layers.Dense(32, activation="relu", input_shape=input_shape),
            tf.keras.layers.Dense(1),
        ]
        return tf.keras.Sequential(layers)
    layers = [
        tf.keras.layers.Dense(64, activation="relu", input_shape=input_shape),
        tf.keras.layers.Dense(1),
    ]
    return tf.keras.Sequential(layers)


tf.random.set_seed(0)
with warnings.catch_warnings(action="ignore"):  # Keras 3 wants an `Input`, and makes one
    units = [create_model((10,)).layers[0].units for _ in range(12)]

# %% [markdown] tags=["decided"]
# 001-C5

# %%
document.judges(
    {
        "001-C5": [OUTCOMES[f"one layer {what}"][0] == "wrong" for what in ("added", "removed")],
    },
)

# %% [markdown] tags=["decided"]
# 001-C12

# %%
document.judges(
    {
        "001-C12": [graphless_model_fails()],
    },
)

# %% [markdown] tags=["decided"]
# 001-C7, 001-C16

# %%
document.judges(
    {
        "001-C7": [new_model_is_restored()],
        "001-C16": [first != second for first, second in itertools.pairwise(units)],
    },
)

# %% [markdown] tags=["section"]
# fm07

# %% tags=["claims"]
# Where an `if` on a tensor works, and checkpoints saved after eager steps, after a step that raised, and after one in Python.
session = document.page("fm07")
# from fm07: np, tf

import contextlib


def make_model():
    layers = [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    model = tf.keras.Sequential(layers)
    model.compile(optimizer=tf.keras.optimizers.SGD(0.01), loss="mse")
    model.optimizer.build(model.trainable_variables)
    return model


def train(model, loss_of, wrap=tf.function):
    @wrap
    def step(data):
        with tf.GradientTape() as tape:
            loss = loss_of(model(data))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    for number in range(3):
        step(tf.fill((8, 3), float(number)))


def checkpoint_breaks(loss_of, wrap=tf.function):
    """Trains as far as that goes, saves, and asks whether a new model gets other weights."""
    model, restored = make_model(), make_model()
    model.set_weights([weight + 1.0 for weight in model.get_weights()])
    with contextlib.suppress(NotImplementedError):
        train(model, loss_of, wrap)
    with tempfile.TemporaryDirectory() as folder:
        saved = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
        path = saved.save(f"{folder}/training")
        checkpoint = tf.train.Checkpoint(model=restored, optimizer=restored.optimizer)
        checkpoint.restore(path).assert_consumed()
    pairs = zip(model.get_weights(), restored.get_weights())
    return not all(np.array_equal(*pair) for pair in pairs)


def in_tensorflow(outputs):
    return tf.reduce_mean(tf.square(outputs - 1.0))


def in_numpy(outputs):
    return np.mean(np.square(outputs - 1.0))


def in_python(outputs):
    return tf.py_function(in_tensorflow, [outputs], tf.float32)


# %% [markdown] tags=["decided"]
# 001-C8

# %%
document.judges(
    {
        "001-C8": [checkpoint_breaks(in_tensorflow, wrap=lambda step: step)],
    },
)

# %% [markdown] tags=["decided"]
# 001-C9

# %%
document.judges(
    {
        "001-C9": [checkpoint_breaks(in_numpy), checkpoint_breaks(in_python)],
    },
)

# %% [markdown] tags=["section"]
# fm09

# %% tags=["claims"]
# What a file from before the first step holds: the untrained weights and no slots, so that training does not repeat.
session = document.page("fm09")
# from fm09: make_model, np, tempfile, train, with_slots, without_slots

model, checkpoint = make_model()
with tempfile.TemporaryDirectory() as folder:
    untrained = model.get_weights()[0]
    path = checkpoint.save(f"{folder}/start")
    train(model)
    trained = model.get_weights()[0]
    checkpoint.restore(path)
    restored = model.get_weights()[0]
    train(model)

# %% [markdown] tags=["decided"]
# 001-C11

# %%
document.judges(
    {
        "001-C11": [
            not np.allclose(trained, restored),
            np.array_equal(untrained, restored),
            without_slots[1] == with_slots[1] - len(model.trainable_variables),
            not np.allclose(trained, model.get_weights()[0]),
        ],
    },
)

# %% [markdown] tags=["section"]
# fm08

# %% tags=["claims"]
# Each supposed cause with the right path, the wrong path without it, and what latest_checkpoint finds of the callback.
session = document.page("fm08")
# from fm08: tempfile, tf

import numpy as np


def make_model(units=1):
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(units)])
    optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    model.compile(optimizer=optimizer, loss=tf.keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def my_loss_calculation(values):
    return tf.reduce_mean(tf.square(values))


def raises(second, trained, right_path):
    """Trains and saves a model, gives its name to a second one and restores, as the document's examples do."""
    model = make_model()
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    if trained:
        with tf.GradientTape() as tape:
            loss = my_loss_calculation(model(np.ones((8, 3), "float32")))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    with tempfile.TemporaryDirectory() as folder:
        saved = checkpoint.save(f"{folder}/my_checkpoint")
        model = second
        try:
            checkpoint.restore(saved if right_path else f"{folder}/my_checkpoint")
        except tf.errors.NotFoundError:
            return True
    return False


# %% [markdown] tags=["decided"]
# 001-C6

# %%
document.judges(
    {
        "001-C6": [raises(make_model(4), True, True), not raises(make_model(), True, False)],
    },
)

# %% [markdown] tags=["decided"]
# 001-C10

# %%
document.judges(
    {
        "001-C10": [raises(make_model(), True, True), not raises(make_model(), False, False)],
    },
)

# %% [markdown]
# ## All verdicts
#
# How many statements have which verdict here. This cell fails if a claim that is declared has not been judged above.

# %%
document.verdicts()
