# %% [markdown]
# # FM29. Loading weights without the optimizer's state changes the training
#
# The weights come back to the last digit, the predictions are right, and the training that goes on from them is another one.
#
# *Silent. The save format matters, and for `.h5` the Keras generation; the strategy does not. From document 004.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm29",
    slug="optimizer_state_lost",
    title="Loading weights without the optimizer's state changes the training",
    sees="a loaded model predicts what it should, and its training starts its optimizer anew",
    fix="resume from what holds the optimizer: `tf.train.Checkpoint(model=model, optimizer=optimizer)`",
    document="004",
    switches=("save_format", "keras"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"the optimizer is at step \d+ of \d+, with \d+ of \d+ variables",
            formats=("weights_h5", "saved_model", "npz"),
        ),
        Symptom(
            "SilentFailure",
            r"the optimizer is at step \d+ of \d+, with \d+ of \d+ variables",
            formats=("h5",),
            keras=(3,),
        ),
    ),
    claims=(
        Claim("004-C7", "weights and configuration, kept apart, are the reliable way", "false"),
    ),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "npz"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm29", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# A model is its layers and its weights, so you keep the configuration and the arrays, and build the model again wherever
# you want. To see that it works you compare predictions. They are equal, to the last digit, and you resume the training.

# %%
import tempfile
import warnings

import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, checks, experiment, figures, formats, runner

warnings.filterwarnings("ignore", "Skipping variable loading")  # see below; not for your script
STEPS, MORE = 3, 3


def make_model():
    """Compiled, as models are; the optimizer makes its variables when it is first used."""
    model = tf.keras.Sequential(
        [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="zeros")]
    )
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    model.compile(optimizer=optimizer, loss=tf.keras.losses.MeanSquaredError())
    return model


def train(strategy, model, first, last):
    def step(data):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(data) - 1.0)) / strategy.num_replicas_in_sync
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    for number in range(first, last):
        data = np.random.default_rng(number).normal(size=(8, 3)).astype("float32")
        runner(strategy)(step, args=(tf.constant(data),))


def train_and_save(strategy, folder, save_formats):
    """Trains, saves, and goes on as if nothing had come between."""
    with strategy.scope():
        model = make_model()
        model.optimizer.build(model.trainable_variables)
    train(strategy, model, 0, STEPS)
    for name in save_formats:
        formats.save(model, folder, name)
    train(strategy, model, STEPS, STEPS + MORE)
    return model


def load(folder, save_format):
    """A model that can train: where the file brings no optimizer, a new one, as a script would have it."""
    loaded = formats.load(folder, save_format, make_model)
    if getattr(loaded, "optimizer", None) is not None:
        return loaded
    model = make_model()
    model.set_weights([np.asarray(tf.convert_to_tensor(each)) for each in loaded.variables])
    return model


def state(model):
    """The weights and all that the optimizer remembers."""
    listed = [*model.variables, *model.optimizer.variables]
    return [np.asarray(tf.convert_to_tensor(each)) for each in listed]


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        uninterrupted = train_and_save(strategy, folder, [setup.save_format, "checkpoint"])
        with strategy.scope():
            model = load(folder, setup.save_format)  # guilty: takes the weights for the training
            checks.assert_optimizer_resumed(model, STEPS)
    train(strategy, model, STEPS, STEPS + MORE)
    return Proof(
        "weights and optimizer are those without a restart", state(model), state(uninterrupted)
    )


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# Training has a second memory. Momentum keeps the direction of the last steps, Adam two averages for each weight, and all of them
# count their steps, which schedules and bias corrections read. These variables belong to the optimizer, not to the
# model: `get_weights()` does not contain them, and a configuration holds the learning rate at most.
#
# A new optimizer takes the place without a word, since every training starts with one. A `.weights.h5` file does hold
# the state, but gives it only to an optimizer that has its variables already, and an unused one has none; Keras 3 warns of that,
# Keras 2 does not. From `.h5`, Keras 3 brings back the step counter and no slots: its next step raises.
#
# The picture follows one weight. See
# [the training checkpoints guide](https://www.tensorflow.org/guide/checkpoint).


# %%
def bias_over_steps(save_format):
    """The bias of the model before the first step and after each, with a restart in between."""
    alone = build_strategy(clinic.setup.but(strategy="default", devices=1))
    model = make_model()
    values = [float(model.get_weights()[-1][0])]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(STEPS + MORE):
            if number == STEPS:
                formats.save(model, folder, save_format)
                model = load(folder, save_format)
            train(alone, model, number, number + 1)
            values.append(float(model.get_weights()[-1][0]))
    return values


LIVES = {
    "checkpoint": bias_over_steps("checkpoint"),
    "weights only": bias_over_steps("npz"),
}
figures.timeline(LIVES, STEPS + 1, "restart", "bias")

# %% [markdown]
# ## The fix
#
# Write two things: a file to predict with, in whatever format its users like, and a checkpoint of model *and* optimizer to resume
# from. `.keras` holds both as well. After loading, inside the scope, `checks.assert_optimizer_resumed(model, step)` raises
# if the optimizer is not at the step where you stopped, or lacks variables. It also makes these variables, and that is when a
# checkpoint hands over their values: keep its file until then.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        uninterrupted = train_and_save(strategy, folder, [setup.save_format, "checkpoint"])
        with strategy.scope():
            model = load(folder, "checkpoint")  # repair: the file that holds the training
            checks.assert_optimizer_resumed(model, STEPS)
    train(strategy, model, STEPS, STEPS + MORE)
    return Proof(
        "weights and optimizer are those without a restart", state(model), state(uninterrupted)
    )


clinic.proves(fixed)

# %%
one = clinic.setup.but(strategy="default", devices=1)
SETUPS = [one.but(save_format=each) for each in ("keras", "h5", "weights_h5", "npz")]
SETUPS += [one.but(strategy="mirrored", devices=2)]
SETUPS += [one.but(keras=clinic.setup.other_keras, save_format=each) for each in ("h5", "npz")]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# `keras` and `checkpoint` keep the optimizer, under any strategy. `h5` depends on the Keras generation. The other three lose it
# everywhere, one of them only because nobody has built the optimizer.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 004 calls configuration and weights the way that behaves the same everywhere. It does: the optimizer is lost
# everywhere.


# %% tags=["claims"]
def resumes(save_format):
    """Is the optimizer where it was, and is the training that follows the uninterrupted one?"""
    alone = build_strategy(clinic.setup.but(strategy="default", devices=1))
    with tempfile.TemporaryDirectory() as folder:
        uninterrupted = train_and_save(alone, folder, [save_format])
        model = load(folder, save_format)
        try:
            checks.assert_optimizer_resumed(model, STEPS)
            kept = True
        except checks.SilentFailure:
            kept = False
    train(alone, model, STEPS, STEPS + MORE)
    pairs = zip(model.get_weights(), uninterrupted.get_weights())
    return [kept, all(np.allclose(got, want, atol=1e-6) for got, want in pairs)]


print(
    "from a checkpoint:", resumes("checkpoint"), "from configuration and weights:", resumes("npz")
)
clinic.judges({"004-C7": resumes("npz")})

# %% [markdown]
# ## Exercise
#
# The `.weights.h5` file in this script does hold the optimizer's state. The loading model is not ready for it. Add one line
# that makes it ready.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        uninterrupted = train_and_save(strategy, folder, ["weights_h5"])
        with strategy.scope():
            model = make_model()
            model.load_weights(f"{folder}/model.weights.h5")
    train(strategy, model, STEPS, STEPS + MORE)
    return Proof(
        "the weights are those without a restart", model.get_weights(), uninterrupted.get_weights()
    )


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder:
        uninterrupted = train_and_save(strategy, folder, ["weights_h5"])
        with strategy.scope():
            model = make_model()
            model.optimizer.build(model.trainable_variables)
            model.load_weights(f"{folder}/model.weights.h5")
    train(strategy, model, STEPS, STEPS + MORE)
    return Proof(
        "the weights are those without a restart", model.get_weights(), uninterrupted.get_weights()
    )


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm26 replica_count_changed](fm26_replica_count_changed.ipynb): the other reason why a resumed
#   training is not the one that you stopped.
# - [fm05 untracked_variable](fm05_untracked_variable.ipynb): a value that not even a checkpoint of
#   model and optimizer holds.
# - [fm28 ragged_weights_file](fm28_ragged_weights_file.ipynb): when writing the weights fails already.
