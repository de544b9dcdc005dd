# %% [markdown]
# # FM29. Loading weights without the optimizer's state changes the training
#
# The weights come back to the last digit, and the predictions are right. `fit` goes on from them, and ends at other weights than
# a run without a restart.
#
# ```text
# the bias after the second epoch: 0.971, without a restart 1.66
# ```
#
# *Silent. The save format matters, and for `.h5` the Keras generation; the strategy does not. From document 004, "Does
# `keras.models.load_model` function correctly with MirroredStrategy?"*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm29",
    slug="optimizer_state_lost",
    title="Loading weights without the optimizer's state changes the training",
    sees="a loaded model predicts what it should, and its training starts its optimizer anew",
    fix="let `fit` resume with `BackupAndRestore`, or load what holds the optimizer: `.keras`, a checkpoint of both",
    document="004",
    switches=("save_format", "keras"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"not so: the weights are those of a run without a restart",
            formats=("weights_h5", "saved_model", "npz"),
        ),
        Symptom(
            "SilentFailure",
            r"not so: the weights are those of a run without a restart",
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
import strategy_clinic as clinic

session = clinic.open("fm29", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You believe that a model is its layers and its weights. So you keep the configuration and the arrays, and build the model again
# where you need it. To be sure you compare predictions. They are equal to the last digit, and you go on with `fit`.

# %%
import contextlib
import tempfile
import warnings

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, checks, experiment, figures, formats

warnings.filterwarnings("ignore", "Skipping variable loading")  # see below; not for your script
STEPS = 3


def examples():
    """Data for an epoch of three steps; the targets are ones."""
    data = np.random.default_rng(0).normal(size=(8 * STEPS, 3)).astype("float32")
    return data, np.ones((8 * STEPS, 1), "float32")


def make_model():
    """Compiled, as models are; the optimizer makes its variables when it is first used."""
    dense = tf.keras.layers.Dense(1, kernel_initializer="zeros")
    model = tf.keras.Sequential([tf.keras.Input((3,)), dense])
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    model.compile(optimizer=optimizer, loss=tf.keras.losses.MeanSquaredError())
    return model


def fit(model, epochs=1, callbacks=()):
    data, targets = examples()
    options = {"batch_size": 8, "shuffle": False, "verbose": 0}
    model.fit(data, targets, epochs=epochs, callbacks=list(callbacks), **options)


def bias_and_kernel(model):
    return model.get_weights()[::-1]


def train_and_save(folder, save_format):
    """One epoch, saved; returns the weights after one more, had nothing come between."""
    model = make_model()
    fit(model)
    formats.save(model, folder, save_format)
    fit(model)
    return bias_and_kernel(model)


def load(folder, save_format):
    """A model that can train: where the file brings no slot variables, with a new optimizer, as a script would have it."""
    loaded = formats.load(folder, save_format, make_model)
    optimizer = getattr(loaded, "optimizer", None)
    if optimizer is not None:
        optimizer.build(loaded.trainable_variables)
        if len(optimizer.variables) > 2:  # more than the step counter and the learning rate
            return loaded
    model = make_model()
    model.set_weights([tf.convert_to_tensor(each).numpy() for each in loaded.variables])
    return model


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder, strategy.scope():
        want = train_and_save(folder, setup.save_format)
        model = load(folder, setup.save_format)  # guilty: takes the weights for the training
    fit(model)
    return Proof("the weights are those of a run without a restart", bias_and_kernel(model), want)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# Training has a state besides the weights. SGD with momentum keeps one slot variable for each weight, Adam keeps two. Every
# optimizer keeps a step counter, which learning rate schedules read. These variables belong to the optimizer: `get_weights()`
# does not return them, and a configuration holds no values.
#
# A new optimizer starts with zeros, as in every new training, so nothing is raised. A `.weights.h5` file does hold the state, but
# only an optimizer that is already built can take it. Keras 3 warns where it is not built. From `.h5`, Keras 3 brings back the
# step counter and no slots. `fit` then raises `Unknown variable` until you compile with a new optimizer, and the state is lost.
#
# The picture follows the bias. See
# [the training checkpoints guide](https://www.tensorflow.org/guide/checkpoint).


# %%
def bias_over_steps(save_format):
    """The bias before the first step and after each, with a restart between two epochs."""
    values, model = [0.0], make_model()

    def note(batch, logs):
        values.append(float(model.get_weights()[-1][0]))

    noted = tf.keras.callbacks.LambdaCallback(on_train_batch_end=note)
    fit(model, callbacks=[noted])
    with tempfile.TemporaryDirectory() as folder:
        formats.save(model, folder, save_format)
        model = load(folder, save_format)
    fit(model, callbacks=[noted])
    return values


LIVES = {"with the optimizer": bias_over_steps("keras"), "weights only": bias_over_steps("npz")}
figures.timeline(LIVES, STEPS + 1, "restart", "bias")

# %% [markdown]
# ## The fix
#
# With `fit`, pass `BackupAndRestore`: it saves model, optimizer and epoch, and the same script goes on where it was killed.
# Before, where the second epoch starts with new momentum:
#
# ```python
# import tensorflow as tf
#
# def new_model():
#     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")])
#     model.compile(tf.keras.optimizers.SGD(0.25, momentum=0.5), "mse")
#     return model
# first, second = new_model(), new_model()
# first.fit(tf.ones((4, 1)), tf.ones((4, 1)), verbose=0)
# second.set_weights(first.get_weights())
# second.fit(tf.ones((4, 1)), tf.ones((4, 1)), verbose=0)
# print(second.get_weights()[0])  # [[0.75]]
# ```
#
# After. Here `delete_checkpoint=False` stands for the crash, since a `fit` that ends deletes its backup:
#
# ```python
# import tensorflow as tf
#
# def train(epochs):
#     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")])
#     model.compile(tf.keras.optimizers.SGD(0.25, momentum=0.5), "mse")
#     backup = tf.keras.callbacks.BackupAndRestore("backup", delete_checkpoint=False)
#     model.fit(tf.ones((4, 1)), tf.ones((4, 1)), epochs=epochs, callbacks=[backup], verbose=0)
#     return model.get_weights()[0]
# print(train(epochs=1), train(epochs=2))  # [[0.5]] [[1.]]
# ```
#
# To resume elsewhere, save `.keras`, or a `tf.train.Checkpoint(model=model, optimizer=optimizer)`. A checkpoint fills the
# optimizer when that is built, so its files must still exist then. After loading, in the scope,
# `checks.assert_optimizer_resumed(model, step)` builds the optimizer, and raises if it is at another step or lacks
# variables. `print(pasted(checks.assert_optimizer_resumed))` prints it, after `from strategy_clinic import pasted`.


# %%
class Killed(tf.keras.callbacks.Callback):
    """What the end of a machine is: the second epoch does not begin."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise InterruptedError


@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder, strategy.scope():
        want = train_and_save(folder, setup.save_format)
        model, backup = make_model(), f"{folder}/backup"
        with contextlib.suppress(InterruptedError):
            fit(model, 2, [tf.keras.callbacks.BackupAndRestore(backup), Killed()])
        model = make_model()
        fit(model, 2, [tf.keras.callbacks.BackupAndRestore(backup)])  # repair
    return Proof("the weights are those of a run without a restart", bias_and_kernel(model), want)


session.proves(fixed)

# %%
one = session.setup.but(strategy="default", devices=1)
SETUPS = [one.but(save_format=each) for each in ("keras", "weights_h5", "npz")]
SETUPS += [one.but(strategy="mirrored", devices=2)]
SETUPS += [one.but(keras=session.setup.other_keras, save_format="h5")]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Try the save formats: `keras` and `checkpoint` keep the optimizer, under any strategy with `fit`. Then choose `h5` and switch
# Keras: the outcome depends on the generation.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# Document 004, "Does `keras.models.load_model` function correctly with MirroredStrategy?", recommends
#
# > saving the model's weights independently, alongside a separate configuration file detailing the architecture, and then
# > reconstituting the model with the appropriate strategy during loading.
#
# and says of it: "This approach ensures consistent behavior across different hardware and software setups." That holds for
# predictions. A training that goes on from it is another one.


# %% tags=["claims"]
def resumes(save_format):
    """Is the optimizer where it was, and does the training that follows end where an uninterrupted one does?"""
    with tempfile.TemporaryDirectory() as folder:
        want = train_and_save(folder, save_format)
        model = load(folder, save_format)
    try:
        checks.assert_optimizer_resumed(model, STEPS)
        kept = True
    except checks.SilentFailure:
        kept = False
    fit(model)
    same = all(np.allclose(a, b, atol=1e-6) for a, b in zip(bias_and_kernel(model), want))
    return [kept, same]


FOUND = {name: resumes(name) for name in ("checkpoint", "npz")}
print("optimizer kept, same weights later; from a checkpoint:", *FOUND["checkpoint"])
print("optimizer kept, same weights later; from configuration and weights:", *FOUND["npz"])
session.judges({"004-C7": FOUND["npz"]})

# %% [markdown]
# ## Exercise
#
# The `.weights.h5` file in this script does hold the state of the optimizer. The new optimizer is not built when the file is
# loaded. Add one line that builds it.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder, strategy.scope():
        want = train_and_save(folder, "weights_h5")
        model = make_model()
        model.load_weights(f"{folder}/model.weights.h5")
    fit(model)
    return Proof("the weights are those of a run without a restart", bias_and_kernel(model), want)


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder, strategy.scope():
        want = train_and_save(folder, "weights_h5")
        model = make_model()
        model.optimizer.build(model.trainable_variables)
        model.load_weights(f"{folder}/model.weights.h5")
    fit(model)
    return Proof("the weights are those of a run without a restart", bias_and_kernel(model), want)


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm09 optimizer_slots_missing](fm09_optimizer_slots_missing.ipynb): a checkpoint with the slots, and an optimizer without.
# - [fm26 replica_count_changed](fm26_replica_count_changed.ipynb): the other reason why a resumed training is another one.
# - [fm05 untracked_variable](fm05_untracked_variable.ipynb): a value that no checkpoint of model and optimizer holds.
# - [fm28 ragged_weights_file](fm28_ragged_weights_file.ipynb): the arrays that cannot even be written.
