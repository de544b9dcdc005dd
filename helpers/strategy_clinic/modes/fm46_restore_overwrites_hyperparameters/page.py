# %% [markdown]
# # FM46. Restoring an optimizer brings its old learning rate back
#
# You lower the learning rate in your script and go on from a checkpoint. Nothing is raised. The training goes on with the rate
# that the checkpoint was saved with.
#
# ```text
# optimizer = Adam(0.001); after restore its learning rate is 0.1
# ```
#
# *Silent, under every strategy. Save format and Keras generation matter: `.weights.h5` of Keras 2 keeps no learning rate.
# Reported in 2019 as [tensorflow#33842](https://github.com/tensorflow/tensorflow/issues/33842), and still so. The document on
# checkpoints and `apply_gradients` (001) does not mention it.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm46",
    slug="restore_overwrites_hyperparameters",
    title="Restoring an optimizer brings its old learning rate back",
    sees="a new learning rate, or a new schedule, has no effect after a restore",
    fix="set `optimizer.learning_rate = ...` after the restore; for a schedule, `optimizer.iterations.assign(0)`",
    document="001",
    switches=("save_format", "keras"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"not so: the next step uses the learning rate of the new script",
            formats=("keras", "checkpoint"),
        ),
        Symptom(
            "SilentFailure",
            r"not so: the next step uses the learning rate of the new script",
            formats=("weights_h5",),
            keras=(3,),
        ),
        Symptom(
            "SilentFailure",
            r"not so: the next step uses the learning rate of the new script",
            formats=("h5",),
            keras=(2,),
        ),
    ),
    claims=(),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm46", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The loss has stopped falling. You stop the training, write a smaller learning rate into the script, and start it again from the
# last checkpoint. You believe that a checkpoint holds what was learned, and that the script says how to learn.

# %%
import tempfile

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, checks, experiment, figures, formats

OLD, NEW = 0.25, 0.05  # the learning rate of the first script, and of the second


def make_model(optimizer):
    """One weight, which starts at 0 and is to become 1; the optimizer has its variables."""
    dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
    model.compile(optimizer=optimizer, loss=tf.keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def fit(model, epochs=1):
    """One step in each epoch."""
    ones = np.ones((8, 1), "float32")
    model.fit(ones, ones, batch_size=8, epochs=epochs, verbose=0)


def first_script(folder, save_format):
    model = make_model(tf.keras.optimizers.SGD(OLD))
    fit(model)
    formats.save(model, folder, save_format)


def second_script():
    return make_model(tf.keras.optimizers.SGD(NEW))


def load(folder, setup):
    """The model that training goes on with: compiled anew where the file holds no optimizer that can train."""
    loaded = formats.load(folder, setup.save_format, second_script)
    if formats.keeps(setup.save_format, "optimizer", setup.keras):
        return loaded
    model = second_script()
    model.set_weights([tf.convert_to_tensor(each).numpy() for each in loaded.variables])
    return model


def weight_of(model):
    return float(model.get_weights()[0][0, 0])


def rate_used(model):
    """Worked out from one more step: how far the weight moves, divided by its gradient."""
    before = weight_of(model)
    fit(model)
    return (weight_of(model) - before) / (2 * (1.0 - before))


def proof(rate):
    return Proof("the next step uses the learning rate of the new script", [rate], [NEW], 1e-5)


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder, strategy.scope():
        first_script(folder, setup.save_format)
        model = load(folder, setup)  # guilty: the file has a learning rate too
    return proof(rate_used(model))


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# `SGD(0.05)` puts the number into a variable of the optimizer. A checkpoint holds the optimizer's variables, and `restore`
# assigns all of them: the slots, which you want, the step counter, and the learning rate. The number in your script was no more
# than a first value. For a restart of the same script that is right: a rate that was lowered in training stays low.
#
# A schedule is not saved, but it computes the rate from the step counter. A new schedule therefore starts in its middle. The
# loss scale of mixed precision is a variable too. Momentum, weight decay and clipping are plain Python numbers, so your script's
# values hold.
#
# `load_model` brings the saved optimizer as a whole. Keras 2 writes only step counter and slots into `.weights.h5`. The picture
# changes one setting at a time. See [the training checkpoints guide](https://www.tensorflow.org/guide/checkpoint).


# %%
def scaled(value):
    sgd = tf.keras.optimizers.SGD(0.1)
    return tf.keras.mixed_precision.LossScaleOptimizer(sgd, initial_scale=value)


def made(make, value):
    """A model whose optimizer has this setting, and has made as many steps."""
    model = make_model(make(value))
    model.optimizer.iterations.assign(int(value))
    return model


def scale_of(optimizer):
    keras_2 = hasattr(optimizer, "loss_scale")
    return optimizer.loss_scale if keras_2 else optimizer.dynamic_scale


# Each setting: an optimizer that has it, and how to read it.
SETTINGS = {
    "learning rate": (tf.keras.optimizers.SGD, lambda sgd: sgd.learning_rate),
    "schedule's step": (lambda value: tf.keras.optimizers.SGD(0.1), lambda sgd: sgd.iterations),
    "loss scale": (scaled, scale_of),
    "momentum": (
        lambda value: tf.keras.optimizers.SGD(0.1, momentum=value / 8),
        lambda sgd: sgd.momentum * 8,
    ),
    "weight decay": (
        lambda value: tf.keras.optimizers.SGD(0.1, weight_decay=value),
        lambda sgd: sgd.weight_decay,
    ),
    "clipping": (
        lambda value: tf.keras.optimizers.SGD(0.1, clipnorm=value),
        lambda sgd: sgd.clipnorm,
    ),
}


def whose(setting, save_format):
    """The old value is 4 and the new one 2: which of them does the optimizer have after loading?"""
    make, read = SETTINGS[setting]
    with tempfile.TemporaryDirectory() as folder:
        formats.save(made(make, 4.0), folder, save_format)
        loaded = formats.load(folder, save_format, lambda: made(make, 2.0))
    return {4.0: "old", 2.0: "new"}[float(tf.convert_to_tensor(read(loaded.optimizer)))]


COLUMNS = {"checkpoint": "checkpoint", "weights_h5": ".weights.h5", "keras": "load_model"}
FOUND = {setting: [whose(setting, each) for each in COLUMNS] for setting in SETTINGS}
figures.words(FOUND, list(COLUMNS.values()), "old", "Whose value does training go on with?")

# %% [markdown]
# ## The fix
#
# Set the learning rate after the restore. Before:
#
# ```python
# import tensorflow as tf
#
# def new_model(rate):
#     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
#     model.compile(tf.keras.optimizers.Adam(rate), "mse")
#     return model
# first, second = new_model(0.1), new_model(0.001)
# path = tf.train.Checkpoint(model=first, optimizer=first.optimizer).save("checkpoint")
# tf.train.Checkpoint(model=second, optimizer=second.optimizer).restore(path)
# print(second.optimizer.learning_rate.numpy())  # 0.1
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# def new_model(rate):
#     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
#     model.compile(tf.keras.optimizers.Adam(rate), "mse")
#     return model
# first, second = new_model(0.1), new_model(0.001)
# path = tf.train.Checkpoint(model=first, optimizer=first.optimizer).save("checkpoint")
# tf.train.Checkpoint(model=second, optimizer=second.optimizer).restore(path)
# second.optimizer.learning_rate = 0.001
# print(second.optimizer.learning_rate.numpy())  # 0.001
# ```
#
# A rate that is a schedule cannot be set. Assign the step counter: `optimizer.iterations.assign(0)` starts the schedule anew,
# and with it the bias correction of Adam. `BackupAndRestore` restores when `fit` begins, so set the rate in a callback that
# comes after it. To start the optimizer anew as a whole, restore the model alone: then its slots are lost (fm29).
#
# `checks.assert_learning_rate(optimizer, 0.001)` raises where TensorFlow is silent: call it right before training.
# `print(pasted(checks.assert_learning_rate))` prints it with all that it needs, after `from strategy_clinic import pasted`.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder, strategy.scope():
        first_script(folder, setup.save_format)
        model = load(folder, setup)
        model.optimizer.learning_rate = NEW  # repair
    checks.assert_learning_rate(model.optimizer, NEW)
    return proof(rate_used(model))


session.proves(fixed)

# %%
one = session.setup.but(strategy="default", devices=1, save_format="checkpoint")
SETUPS = [one, one.but(strategy="mirrored", devices=2)]
SETUPS += [one.but(save_format=each) for each in ("keras", "weights_h5", "npz")]
other = one.but(keras=session.setup.other_keras)
SETUPS += [other, other.but(save_format="weights_h5")]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Try the save formats. `npz` and `saved_model` hold no optimizer, so the new rate is used. Then choose `weights_h5` and switch
# Keras.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# The report of 2019 has the title
#
# > Optimizer state gets automatically restored when loading weights from checkpoint and doesnt change when you compile the model
#
# It loads weights first, and then compiles with another rate. Keras 2 still does what it says, because the values of the
# optimizer wait until `compile` makes one. Keras 3 reads no checkpoint with `load_weights`. So this cell runs on Keras 2.


# %%
@experiment
def as_reported(setup):
    """`load_weights`, then `compile` with a new rate."""
    first = make_model(tf.keras.optimizers.SGD(OLD))
    dense = tf.keras.layers.Dense(1, use_bias=False)
    second = tf.keras.Sequential([tf.keras.Input((1,)), dense])
    with tempfile.TemporaryDirectory() as folder:
        first.save_weights(f"{folder}/checkpoint")
        second.load_weights(f"{folder}/checkpoint")
        second.compile(tf.keras.optimizers.SGD(NEW), "mse")
        rate = float(second.optimizer.learning_rate.numpy())
    return Proof("the model that was compiled last uses the old rate", [rate], [OLD])


print("on Keras 2:", as_reported(one.but(keras=2)).what)

# %% [markdown]
# ## Exercise
#
# The first script had a schedule, which has come to a small rate. The second has a schedule of its own, which starts at 0.05.
# Its first step uses another rate. Add one line after the restore.


# %% tags=["exercise"]
def halving(rate):
    """A rate that is halved in every step."""
    schedule = tf.keras.optimizers.schedules.ExponentialDecay(rate, 1, 0.5)
    return make_model(tf.keras.optimizers.SGD(schedule))


@experiment
def attempt(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder, strategy.scope():
        first, model = halving(OLD), halving(NEW)
        fit(first, epochs=3)
        path = tf.train.Checkpoint(model=first, optimizer=first.optimizer).save(f"{folder}/ck")
        tf.train.Checkpoint(model=model, optimizer=model.optimizer).restore(path)
    return proof(rate_used(model))


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder, strategy.scope():
        first, model = halving(OLD), halving(NEW)
        fit(first, epochs=3)
        path = tf.train.Checkpoint(model=first, optimizer=first.optimizer).save(f"{folder}/ck")
        tf.train.Checkpoint(model=model, optimizer=model.optimizer).restore(path)
        model.optimizer.iterations.assign(0)
    return proof(rate_used(model))


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm29 optimizer_state_lost](fm29_optimizer_state_lost.ipynb): the reverse, an optimizer that comes back without its state.
# - [fm09 optimizer_slots_missing](fm09_optimizer_slots_missing.ipynb): a restore that leaves the slots as they are.
# - [fm26 replica_count_changed](fm26_replica_count_changed.ipynb): the rate is the same, and the batch has grown.
# - [fm05 untracked_variable](fm05_untracked_variable.ipynb): a count of epochs that no checkpoint holds.
