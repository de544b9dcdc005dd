# %% [markdown]
# # FM05. A variable that nothing saves starts again from its first value
#
# Training resumes from a checkpoint, every status check passes, and the predictions are not the ones you had when you saved.
#
# *Silent. It needs no strategy, and every strategy and save format has it. From document 001.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm05",
    slug="untracked_variable",
    title="A variable that nothing saves starts again from its first value",
    sees="a resumed model predicts something else, and nothing was raised",
    fix="make the variable a weight of a layer, or name it: `tf.train.Checkpoint(model=model, mean=mean)`",
    document="001",
    switches=("strategy", "save_format"),
    symptoms=(Symptom("SilentFailure", r"the predictions differ after the restart"),),
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
import helpers

clinic = helpers.open("fm05", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The script centres its data with a running mean. The mean changes from step to step, so it is a `tf.Variable`, made next to
# the code that uses it. You believe that a checkpoint of model and optimizer is a checkpoint of the training.

# %%
import tempfile

import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures, formats

STEPS = 5


@tf.keras.utils.register_keras_serializable("strategy_clinic")
class Memory(tf.keras.layers.Layer):
    """Passes its input on, and owns a mean; unused by the broken script."""

    def build(self, input_shape):
        self.mean = self.add_weight(name="mean", shape=(3,), initializer="zeros", trainable=False)
        self.built = True

    def call(self, inputs):
        return inputs


def make_model():
    model = tf.keras.Sequential(
        [tf.keras.Input((3,)), Memory(name="memory"), tf.keras.layers.Dense(1)]
    )
    model.compile(optimizer="sgd", loss=tf.keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def batch(step):
    return np.random.default_rng(step).normal(loc=2.0, size=(8, 3)).astype("float32")


def predict(model, mean):
    # A SavedModel comes back as a graph to call, not as a Keras model.
    call = getattr(model, "serve", model)
    return np.asarray(call(tf.constant(batch(0)) - tf.convert_to_tensor(mean)))


def is_quiet(check, *arguments):
    try:
        check(*arguments)
    except checks.SilentFailure:
        return False
    return True


def where(variable, model):
    """Where a value is after saving the model: for the picture of the panel."""
    saved = is_quiet(checks.assert_tracked, model, [variable])
    return ["in memory", "in the file"] if saved else ["in memory"]


# %%
def train(strategy, model, mean):
    """Each step moves the mean towards the batch, then trains on what is left."""

    @tf.function
    def step(data):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(data) - 1.0))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    for number in range(STEPS):
        mean.assign(0.7 * tf.convert_to_tensor(mean) + 0.3 * batch(number).mean(axis=0))
        strategy.run(step, args=(tf.constant(batch(number)) - tf.convert_to_tensor(mean),))


def train_and_restart(setup, start):
    """Trains, saves, starts again as a new process would, and compares the predictions."""
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        model, mean = start(strategy, make_model)
        train(strategy, model, mean)
        formats.save(model, folder, setup.save_format)
        before = predict(model, mean)
        model, mean = start(strategy, lambda: formats.load(folder, setup.save_format, make_model))
    after = predict(model, mean)
    checks.assert_same_values("the predictions", before, after)
    return Proof("the predictions after the restart are those from before it", [after], [before])


@experiment
def broken(setup):
    def start(strategy, make):
        with strategy.scope():
            model = make()
            mean = tf.Variable(tf.zeros(3), trainable=False)  # guilty: nothing saved owns it
        return model, mean

    return train_and_restart(setup, start)


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# Saving follows objects, not names and not gradients. It starts at what you hand it and walks along attributes: model, layers,
# weights, optimizer, slots. A variable that hangs on none of them is not in the file, whether it is trained or not. Loading
# walks the same objects, finds all that it looks for, and reports success: nothing in the file says that something is missing.
# Then the script makes its variable again, with the value it had on the first day.
#
# The picture follows the mean and a weight of the model through a restart. See
# [the training checkpoints guide](https://www.tensorflow.org/guide/checkpoint#loading_mechanics).

# %%
two_lives = {"weight of the model": [], "variable that nothing owns": []}


def note(model, mean):
    two_lives["weight of the model"].append(float(model.get_weights()[-1][0]))
    two_lives["variable that nothing owns"].append(float(mean[0]))


def live(model, mean, strategy):
    for number in range(STEPS):
        mean.assign(0.7 * mean + 0.3 * batch(number).mean(axis=0))
        strategy.run(lambda: model.layers[-1].bias.assign_add([0.25]))
        note(model, mean)


with tempfile.TemporaryDirectory() as folder:
    alone = build_strategy(clinic.setup.but(strategy="default", devices=1))
    first, first_mean = make_model(), tf.Variable(tf.zeros(3))
    live(first, first_mean, alone)
    formats.save(first, folder, "checkpoint")
    second, second_mean = formats.load(folder, "checkpoint", make_model), tf.Variable(tf.zeros(3))
    note(second, second_mean)
    live(second, second_mean, alone)
figures.timeline(two_lives, STEPS, "restart", "value")

# %% [markdown]
# ## The fix
#
# Give the variable an owner that is saved. As a weight of a layer it travels in every format; in a TensorFlow checkpoint it is
# enough to name it. `checks.assert_tracked(model, [mean])`, called before you save, raises where TensorFlow is silent.


# %%
def mean_of(model):
    """The mean that the layer made above owns; by name, since a SavedModel has variables and no layers."""
    return next(weight for weight in model.variables if "mean" in weight.name)


@experiment
def fixed(setup):
    def start(strategy, make):
        with strategy.scope():
            model = make()
            mean = mean_of(model)  # repair: a weight of a layer, so the model owns it
        return model, mean

    return train_and_restart(setup, start)


clinic.proves(fixed)

# %%
one = clinic.setup.but(strategy="default", devices=1)
SETUPS = [one.but(save_format=each) for each in ("keras", "h5", "checkpoint", "saved_model")]
SETUPS += [one.but(strategy="mirrored", devices=2), one.but(keras=clinic.setup.other_keras)]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Try every save format and every strategy: the variable is lost in all of them, and the repaired script survives in all.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 001 is right that the variable is reset, and wrong that gradients have anything to do with it. Its first example
# does not run on Keras 3, for a reason that it does not mention: raw `tf.Variable` attributes are not weights there.


# %% tags=["claims"]
def trained_outside_the_checkpoint():
    """A variable that gets gradients and is in no checkpoint: is that refused, and what is it after a restart?"""
    model, scale = make_model(), tf.Variable(1.0)
    optimizer = tf.keras.optimizers.Adam()
    pairs = [(tf.ones_like(checks.variable_of(w)), w) for w in model.trainable_variables] + [
        (tf.constant(1.0), scale)
    ]
    try:
        optimizer.apply_gradients(pairs)
        refused = False
    except (ValueError, KeyError):
        refused = True
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(model=model, optimizer=optimizer).save(f"{folder}/training")
        new_model, new_scale = make_model(), tf.Variable(1.0)
        tf.train.Checkpoint(model=new_model, optimizer=tf.keras.optimizers.Adam()).restore(path)
    return refused, float(scale) != 1.0 and float(new_scale) == 1.0


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
clinic.judges(
    {
        "001-C1": [reset_on_restart()],
        "001-C2": [refused],
        "001-C3": [first_example_runs()],
        "001-C4": [refused, forgotten],
        "001-C13": [
            "helper" not in names_in_checkpoint(model=model),
            "helper" in names_in_checkpoint(model=model, helper=helper),
            not is_quiet(checks.assert_tracked, model, [helper]),
            is_quiet(
                checks.assert_tracked, tf.train.Checkpoint(model=model, helper=helper), [helper]
            ),
        ],
    },
)

# %% [markdown]
# ## Exercise
#
# This script saves a TensorFlow checkpoint. Leave the model alone, and make the checkpoint remember the mean.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    model, mean = make_model(), tf.Variable(tf.zeros(3))
    with tempfile.TemporaryDirectory() as folder:
        mean.assign([1.0, 2.0, 3.0])
        path = tf.train.Checkpoint(model=model).save(f"{folder}/training")
        before = predict(model, mean)
        model, mean = make_model(), tf.Variable(tf.zeros(3))
        tf.train.Checkpoint(model=model).restore(path).assert_consumed()
    return Proof(
        "the predictions after the restart are those from before it",
        [predict(model, mean)],
        [before],
    )


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    model, mean = make_model(), tf.Variable(tf.zeros(3))
    with tempfile.TemporaryDirectory() as folder:
        mean.assign([1.0, 2.0, 3.0])
        path = tf.train.Checkpoint(model=model, mean=mean).save(f"{folder}/training")
        before = predict(model, mean)
        model, mean = make_model(), tf.Variable(tf.zeros(3))
        tf.train.Checkpoint(model=model, mean=mean).restore(path).assert_consumed()
    return Proof(
        "the predictions after the restart are those from before it",
        [predict(model, mean)],
        [before],
    )


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm09 optimizer_slots_missing](fm09_optimizer_slots_missing.ipynb): the values of an optimizer, left behind likewise.
# - [fm29 optimizer_state_lost](fm29_optimizer_state_lost.ipynb): formats that never hold them.
# - [fm35 restore_before_build](fm35_restore_before_build.ipynb): a restore that finds no place yet for what the file holds.
