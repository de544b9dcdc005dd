# %% [markdown]
# # FM46. Restoring an optimizer brings its old learning rate back
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `learning rate: 0.1` | `Adam(0.001)`, then `Checkpoint.restore` or `load_model` | 2, 3 |
# | no message: `learning rate: 0.1` | the same with `load_weights` of `.weights.h5`; Keras 2 keeps 0.001 | 3 |
#
# The learning rate is a variable of the optimizer, so a checkpoint contains it. Restoring the optimizer overwrites the rate of
# your program with the rate of the checkpoint.
#
# *Wrong result without an error, on Keras 2 and 3, with and without a strategy.*

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
            r"it prints 'learning rate: 0\.1', and right is 'learning rate: 0\.001'",
            formats=("keras", "checkpoint"),
        ),
        Symptom(
            "SilentFailure",
            r"it prints 'learning rate: 0\.1', and right is 'learning rate: 0\.001'",
            formats=("weights_h5",),
            keras=(3,),
        ),
    ),
    prints="learning rate: 0.001",
    exercise_prints="first learning rate: 0.01",
    unavailable={
        "saved_model": "it contains no optimizer that can train",
        "h5": "an optimizer that Keras 3 loads from it cannot train (FM10)",
    },
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
# ## The program
#
# A model is trained with the rate 0.1 and saved. The training continues from the checkpoint, with a smaller rate.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Set the learning rate after the restore.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# In other programs:
#
# - With `fit`, the callback `keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.001)` sets the rate in every epoch.
# - The callback `BackupAndRestore` restores when `fit` begins. Set the rate in a callback that comes after it in the list.
# - A schedule cannot be replaced by a number: that raises a `TypeError`. `optimizer.iterations.assign(0)` starts the schedule
#   at its first step, and the bias correction of Adam as well.
# - To start with a new optimizer, compile the model again after the restore. Then the slots are lost
#   ([FM29](fm29_optimizer_state_lost.ipynb)). The first `compile` must come before the restore of a `tf.train.Checkpoint`: an
#   optimizer that the model gets first after it receives the values that wait, and the old rate comes back.
#
# Call this check right before the training. It raises if the optimizer has another rate.

# %% tags=["figure"]
# The source of a check for your own program.
from strategy_clinic import checks, pasted

print(pasted(checks.assert_learning_rate))

# %% [markdown]
# ## Why
#
# `Adam(0.001)` stores the number in a variable. `restore` assigns all variables of the optimizer: the slots, which you want,
# the step counter and the learning rate. If the same program is started again, that is right, because a rate that was lowered
# in training stays low.
#
# A schedule is not saved, but it computes the rate from the step counter. A new schedule therefore starts in its middle. The
# loss scale of mixed precision is a variable, too. Momentum, weight decay and clipping are Python numbers, so the values of
# your program are used.
#
# `load_model` creates the saved optimizer with all its settings. Keras 2 writes only the step counter and the slots into
# `.weights.h5`. The table changes one setting at a time; an old learning rate is the failure of this page. See [the training
# checkpoints guide](https://www.tensorflow.org/guide/checkpoint).

# %% tags=["figure"]
# For each setting, a model is saved with the value 4 and restored into one with the value 2: which one does it have then?
import tempfile

import tensorflow as tf

from strategy_clinic import figures


def model_with(optimizer, value):
    dense = tf.keras.layers.Dense(1, use_bias=False)
    model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
    model.compile(optimizer=optimizer(value), loss="mse")
    model.optimizer.build(model.trainable_variables)
    model.optimizer.iterations.assign(int(value))
    return model


def loss_scaling(value):
    sgd = tf.keras.optimizers.SGD(0.1)
    return tf.keras.mixed_precision.LossScaleOptimizer(sgd, initial_scale=value)


def scale_of(optimizer):
    keras_2 = hasattr(optimizer, "loss_scale")
    return optimizer.loss_scale if keras_2 else optimizer.dynamic_scale


SGD = tf.keras.optimizers.SGD
# Each setting: an optimizer that has it, and how to read it.
SETTINGS = {
    "learning rate": (SGD, lambda sgd: sgd.learning_rate),
    "step counter": (lambda value: SGD(0.1), lambda sgd: sgd.iterations),
    "loss scale": (loss_scaling, scale_of),
    "momentum": (lambda value: SGD(0.1, momentum=value / 8), lambda sgd: sgd.momentum * 8),
    "weight decay": (lambda value: SGD(0.1, weight_decay=value), lambda sgd: sgd.weight_decay),
    "clipnorm": (lambda value: SGD(0.1, clipnorm=value), lambda sgd: sgd.clipnorm),
}


def by_checkpoint(saved, loaded, path):
    file = tf.train.Checkpoint(model=saved, optimizer=saved.optimizer).write(path)
    checkpoint = tf.train.Checkpoint(model=loaded, optimizer=loaded.optimizer)
    checkpoint.read(file).assert_existing_objects_matched()


def by_weights(saved, loaded, path):
    saved.save_weights(f"{path}.weights.h5")
    loaded.load_weights(f"{path}.weights.h5")


def restored(setting, way):
    make, read = SETTINGS[setting]
    loaded = model_with(make, 2.0)
    with tempfile.TemporaryDirectory() as folder:
        way(model_with(make, 4.0), loaded, f"{folder}/model")
    return {4.0: "saved", 2.0: "new"}[float(tf.convert_to_tensor(read(loaded.optimizer)))]


WAYS = {"checkpoint": by_checkpoint, ".weights.h5": by_weights}
VALUES = {setting: [restored(setting, way) for way in WAYS.values()] for setting in SETTINGS}
VALUES["learning rate"] = [value.replace("saved", "old") for value in VALUES["learning rate"]]
figures.words(VALUES, list(WAYS), "old", "Which value is used?")

# %% [markdown]
# ## Try other setups
#
# Try the save formats. `npz` contains no optimizer, so the new rate is used. Then choose `weights_h5` and the other version of
# Keras.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs with four save formats, under `MirroredStrategy`, and on the other version of Keras:

# %% tags=["table"]
one = session.setup.but(strategy="default", devices=1, save_format="checkpoint")
other = one.but(keras=session.setup.other_keras)
FORMATS = [one.but(save_format=each) for each in ("keras", "weights_h5", "npz")]
MIRRORED = one.but(strategy="mirrored", devices=2)
session.table([one, MIRRORED, *FORMATS, other, other.but(save_format="weights_h5")])

# %% [markdown]
# ## Exercise
#
# The second part of this program has a schedule of its own, which starts at 0.01. After the restore it starts lower. Add one
# line, so that the first learning rate is `0.01`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM29](fm29_optimizer_state_lost.ipynb): the opposite, an optimizer that is loaded without its state.
# - [FM09](fm09_optimizer_slots_missing.ipynb): a restore that leaves the slots as they are.
# - [FM26](fm26_replica_count_changed.ipynb): the rate is the same, and the batch has grown.
# - [FM05](fm05_untracked_variable.ipynb): a count of epochs that no checkpoint contains.
