# %% [markdown]
# # FM05. A variable that nothing saves starts again from its first value
#
# Training resumes from a checkpoint, every status check passes, and the predictions are not the ones that you had when you
# saved.
#
# ```text
# prediction before the restart 1.29, prediction after the restart 5.29
# ```
#
# *Silent. It needs no strategy, and every strategy and save format has it. From "Why am I getting a Checkpointing error with
# apply_gradients()?" (document 001).*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm05",
    slug="untracked_variable",
    title="A variable that nothing saves starts again from its first value",
    sees="a resumed model predicts something else, and nothing was raised",
    fix="name the variable in the checkpoint, `tf.train.Checkpoint(model=model, mean=mean)`, or make it a weight of a layer",
    document="001",
    switches=("strategy", "save_format"),
    symptoms=(
        Symptom("SilentFailure", r"the predictions after the restart are those from before it"),
    ),
    claims=(
        Claim("001-C1", "a variable outside the checkpoint is reinitialised on load", "true"),
        Claim("001-C2", "applying gradients to an untracked variable raises an error", "false"),
        Claim("001-C3", "its first example runs and writes a checkpoint", {2: "true", 3: "false"}),
        Claim(
            "001-C4",
            "a variable that gets gradients must be in the checkpoint, or an error follows",
            "half",
        ),
        Claim("001-C13", "temporary variables in helper functions are a silent cause", "true"),
    ),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm05", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The script centres its data with a running mean. The mean changes from step to step, so it is a `tf.Variable`, made next to the
# code that uses it. Model and optimizer are saved and loaded. You believe that this is the whole training.

# %%
import tempfile

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, checks, experiment, figures, formats

STEPS = 5


def make_model(*first_layers):
    layers = [*first_layers, tf.keras.layers.Dense(1, kernel_initializer="ones")]
    model = tf.keras.Sequential([tf.keras.Input((3,)), *layers])
    model.compile(optimizer="sgd", loss=tf.keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def batch(step):
    return np.random.default_rng(step).normal(loc=2.0, size=(8, 3)).astype("float32")


def train(strategy, model, mean, inputs):
    """Each step moves the mean towards the batch, then trains on what `inputs` makes of the batch."""

    def step(data):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(data) - 1.0))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    @tf.function
    def train_step(data):
        strategy.run(step, args=(data,))

    for number in range(STEPS):
        mean.assign(0.7 * tf.identity(mean) + 0.3 * batch(number).mean(axis=0))
        train_step(tf.constant(inputs(number)))


def predict(model, data):
    # A SavedModel comes back as a graph to call, not as a Keras model.
    call = getattr(model, "serve", model)
    return np.asarray(call(tf.constant(data)))


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model()
        mean = tf.Variable(tf.zeros(3), trainable=False)  # guilty: nothing that is saved owns it
    train(strategy, model, mean, lambda number: batch(number) - tf.identity(mean))
    before = predict(model, batch(0) - tf.identity(mean))
    with tempfile.TemporaryDirectory() as folder:
        formats.save(model, folder, setup.save_format)
        with strategy.scope():  # here a new process starts, and runs the same lines
            model = formats.load(folder, setup.save_format, make_model)
            mean = tf.Variable(tf.zeros(3), trainable=False)
    after = predict(model, batch(0) - tf.identity(mean))
    return Proof("the predictions after the restart are those from before it", [after], [before])


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# Saving follows objects. It starts at the object that you hand over and follows attributes: model, layers, weights, optimizer,
# slot variables. A variable that none of these objects refers to is not written to the file. Loading follows the same objects,
# finds a value for each, and reports success. The script then creates its variable again, with its first value.
#
# Training a variable does not add it to the model. On Keras 3 an optimizer refers to the variables that it was built with, so a
# checkpoint of that optimizer holds them. On Keras 2 it holds only their slot variables.
#
# The picture shows the mean of the data in two trainings: one names the mean in its checkpoint, the other does not. See [the
# training checkpoints guide](https://www.tensorflow.org/guide/checkpoint#loading_mechanics).


# %%
def mean_over_steps(checkpoint_of):
    """The mean before the first step and after each; between two steps there is a restart."""
    values, mean = [0.0], tf.Variable(0.0)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(2 * STEPS):
            if number == STEPS:
                path = checkpoint_of(mean).save(f"{folder}/training")
                mean = tf.Variable(0.0)
                checkpoint_of(mean).restore(path)
            mean.assign(0.7 * mean + 0.3 * batch(number).mean())
            values.append(float(mean))
    return values


LIVES = {
    "named in the checkpoint": mean_over_steps(lambda mean: tf.train.Checkpoint(mean=mean)),
    "not named": mean_over_steps(lambda mean: tf.train.Checkpoint()),
}
figures.timeline(LIVES, STEPS + 1, "restart", "running mean")

# %% [markdown]
# ## The fix
#
# In a TensorFlow checkpoint, name the variable. Before:
#
# ```python
# import tempfile
# import tensorflow as tf
#
# def start():
#     return tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)]), tf.Variable(0.0)
#
# model, mean = start()
# mean.assign(2.0)  # as training does
# path = tf.train.Checkpoint(model=model).save(f"{tempfile.mkdtemp()}/training")
# model, mean = start()  # as a new process does
# tf.train.Checkpoint(model=model).restore(path).assert_consumed()
# print(mean.numpy())  # 0.0
# ```
#
# After:
#
# ```python
# import tempfile
# import tensorflow as tf
#
# def start():
#     return tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)]), tf.Variable(0.0)
#
# model, mean = start()
# mean.assign(2.0)
# path = tf.train.Checkpoint(model=model, mean=mean).save(f"{tempfile.mkdtemp()}/training")
# model, mean = start()
# tf.train.Checkpoint(model=model, mean=mean).restore(path).assert_consumed()
# print(mean.numpy())  # 2.0
# ```
#
# The other formats save a model and nothing else. For them, create the variable as a weight of a layer, as `Center` does below.
# `checks.assert_tracked(model, [mean])`, called before you save, raises if saving would leave the mean out.
# `print(pasted(checks.assert_tracked))` prints it with all that it needs (`from strategy_clinic import pasted`).


# %%
@tf.keras.utils.register_keras_serializable("strategy_clinic")
class Center(tf.keras.layers.Layer):
    """Subtracts the running mean, and owns it."""

    def build(self, input_shape):
        self.mean = self.add_weight(name="mean", shape=(3,), initializer="zeros", trainable=False)
        self.built = True

    def call(self, inputs):
        return inputs - self.mean


@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model = make_model(Center())
        mean = model.layers[0].mean  # repair: a weight of a layer, so the model owns it
    checks.assert_tracked(model, [mean])
    train(strategy, model, mean, batch)
    before = predict(model, batch(0))
    with tempfile.TemporaryDirectory() as folder:
        formats.save(model, folder, setup.save_format)
        with strategy.scope():
            model = formats.load(folder, setup.save_format, lambda: make_model(Center()))
    after = predict(model, batch(0))
    return Proof("the predictions after the restart are those from before it", [after], [before])


session.proves(fixed)

# %%
one = session.setup.but(strategy="default", devices=1)
SETUPS = [one.but(save_format=each) for each in ("checkpoint", "keras", "saved_model")]
SETUPS += [one.but(strategy="mirrored", devices=2), one.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Try every save format and every strategy. The mean is lost under all of them, and the layer keeps it under all of them.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# "Why am I getting a Checkpointing error with apply_gradients()?" says of its first example:
#
# > if you run this code, it will run and the checkpoint will be created. … notice that the `untracked_var` is not part of the
# > checkpoint it will be reinitialized when you load the model … when applying gradients and if the untracked variable is part
# > of the gradients you will encounter the error. it's crucial that *all* variables involved in gradient computations are
# > explicitly tracked by the `tf.train.Checkpoint`.
#
# The variable is reset, as it says. Applying a gradient to it raises nothing, and its value is lost at the restart. The example
# runs on Keras 2. On Keras 3 it raises, because raw `tf.Variable` attributes of a model are not weights there.
#
# > a helper function … was using `tf.Variable` for some temporary values but they were not being included in the checkpoint.
#
# Such a variable is indeed missing from the file.


# %% tags=["claims"]
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


class FirstExample(tf.keras.Model):
    """The model of the document's first example, as printed there."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.random.normal((1,)), name="w")
        self.b = tf.Variable(tf.zeros((1,)), name="b")

    def call(self, x):
        return x * self.w + self.b


def first_example_runs():
    model, optimizer, data = FirstExample(), tf.keras.optimizers.Adam(), tf.ones((4, 1))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(data)))
    variables = model.trainable_variables
    try:
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    except ValueError:  # Keras 3: not enough values to unpack, as there are no variables
        return False
    with tempfile.TemporaryDirectory() as folder:
        return bool(tf.train.Checkpoint(model=model, optimizer=optimizer).save(f"{folder}/first"))


def names_in_checkpoint(**objects):
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(**objects).save(f"{folder}/names")
        return " ".join(name for name, _ in tf.train.list_variables(path))


def reset_on_restart():
    model, mean = make_model(), tf.Variable(5.0)
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=model).save(f"{folder}/reset")
        mean = tf.Variable(0.0)
        tf.train.Checkpoint(model=model).restore(path).assert_consumed()
    return float(mean) == 0.0


refused, forgotten = trained_outside_the_checkpoint()
model, helper = make_model(), tf.Variable(0.0, name="helper")
session.judges(
    {
        "001-C1": [reset_on_restart()],
        "001-C2": [refused],
        "001-C3": [first_example_runs()],
        "001-C4": [refused, forgotten],
        "001-C13": [
            "helper" not in names_in_checkpoint(model=model),
            "helper" in names_in_checkpoint(model=model, helper=helper),
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# This script halves its learning rate in every epoch, and counts the epochs itself. After a restart it trains with the first
# learning rate again. Make the checkpoint remember the count.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    model, epoch = make_model(), tf.Variable(0.0)
    with tempfile.TemporaryDirectory() as folder:
        epoch.assign(3.0)
        before = 0.1 * 0.5 ** float(epoch)
        path = tf.train.Checkpoint(model=model).save(f"{folder}/training")
        model, epoch = make_model(), tf.Variable(0.0)
        tf.train.Checkpoint(model=model).restore(path).assert_consumed()
    after = 0.1 * 0.5 ** float(epoch)
    return Proof("the learning rate is that from before the restart", [after], [before])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    model, epoch = make_model(), tf.Variable(0.0)
    with tempfile.TemporaryDirectory() as folder:
        epoch.assign(3.0)
        before = 0.1 * 0.5 ** float(epoch)
        path = tf.train.Checkpoint(model=model, epoch=epoch).save(f"{folder}/training")
        model, epoch = make_model(), tf.Variable(0.0)
        tf.train.Checkpoint(model=model, epoch=epoch).restore(path).assert_consumed()
    after = 0.1 * 0.5 ** float(epoch)
    return Proof("the learning rate is that from before the restart", [after], [before])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm09 optimizer_slots_missing](fm09_optimizer_slots_missing.ipynb): slot variables that are missing from the first
#   checkpoint.
# - [fm29 optimizer_state_lost](fm29_optimizer_state_lost.ipynb): save formats that leave the optimizer's variables out.
# - [fm35 restore_before_build](fm35_restore_before_build.ipynb): values in the file that a restore does not deliver.
