# %% [markdown]
# # FM69. `fit` skips epochs, or trains nothing, after `BackupAndRestore` has resumed a run
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `epochs on new labels: 0` | `fit` after a restart, in place of 3: it returns at once, and its history is empty | 3 |
# | `AttributeError: 'Sequential' object has no attribute '_training_state'` | each later `fit`, restart or not | 2 |
#
# When `BackupAndRestore` restores a model, Keras 3 notes the epoch in the model, and never removes the note. Every later `fit`
# of this model begins with that epoch.
#
# *Wrong result without an error on Keras 3, an error on Keras 2, with or without a strategy.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm69",
    slug="fit_skips_epochs",
    title="`fit` skips epochs, or trains nothing, after `BackupAndRestore` has resumed a run",
    sees="after a restart a second `fit`, such as fine-tuning, makes fewer epochs or none, and its history is empty",
    fix="after the resumed `fit`, save the model and go on with `load_model`, or with a new model that gets its weights",
    document="001",
    switches=("strategy", "keras"),
    symptoms=(
        Symptom("SilentFailure", r"it prints 'epochs on new labels: 0'", keras=(3,)),
        Symptom("AttributeError", r"'\w+' object has no attribute '_training_state'", keras=(2,)),
    ),
    prints="epochs on new labels: 3",
    exercise_prints="kernel of the base has moved: True",
    unavailable={
        "multi_worker": "`fit` of Keras 3 does not run on several workers",
        "parameter_server": "`fit` of Keras 3 does not run there",
        "tpu_traced": "an emulated TPU writes no backup",
        "one_device": "`BackupAndRestore` of Keras 2 does not run there",
        "central_storage": "`BackupAndRestore` of Keras 2 does not run there",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm69", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# Training ends after four epochs, is started again, and makes two more. Then the same model is trained on new labels for three
# epochs. `delete_checkpoint=False` keeps the backup, so that one script can show the stop and the restart.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Save the model and load it again. A `.keras` file has the weights and the state of the optimizer, and no epoch of a backup.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# A new model of the same code works, too: `new.set_weights(model.get_weights())`, with a new optimizer. Neither `compile` nor
# `initial_epoch=0` helps.
#
# To check a program without a restart, compare `len(model.history.epoch)` with the number of epochs after each `fit`. `clinic
# examine` starts the program again, and names this mode.
#
# ## Why
#
# `BackupAndRestore` sets `model._initial_epoch` in `keras/src/callbacks/backup_and_restore.py`. `fit` computes
# `self._initial_epoch or initial_epoch`, and nothing sets the attribute back. So a call begins with the epoch of the backup,
# here 4, and `epochs=3` leaves nothing to do. With `epochs=6` it would make two epochs instead of six.
#
# The error shows only in a run that was stopped. So a program with two phases passes every test, and loses its second phase
# when the machine is restarted. This is a bug of Keras 3, which is not reported yet: `upstream/initial_epoch_stays.md` is
# ready. It needs no strategy. The documentation calls `initial_epoch` the "epoch at which to start training", and a second
# call does not start there. With a `BackupAndRestore` of its own it does not, either.
#
# The same file has a second error. With a number as `save_freq`, a backup that is written in the first epoch after a restart
# says epoch 0. If training stops again in this epoch, the third run repeats all epochs on trained weights. With the default, a
# backup at the end of each epoch, this does not happen.
#
# Keras 2 keeps its note in the attribute `_training_state`, deletes the attribute when `fit` ends, and asks for it in the next
# `fit`. So there it raises, also without a restart, and the same repair helps.
#
# The table shows the epochs of a second call. See [the reference](https://keras.io/api/callbacks/backup_and_restore/), which
# says that training "restarts from the beginning of the interrupted epoch", and nothing of later calls.

# %% tags=["figure"]
# The program above with other ways to go on, in a run that was stopped and in one that was not.
from strategy_clinic import figures

CALL = "model.fit(x, 3 * x, epochs=3, verbose=0)"
NEW = """with strategy.scope():
    new = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    new.compile("sgd", "mse")
new.set_weights(model.get_weights())
model = new
"""
OWN_BACKUP = 'callbacks=[tf.keras.callbacks.BackupAndRestore("second")]'
WAYS = {
    "fit(epochs=3)": CALL,
    "fit(epochs=3, initial_epoch=0)": CALL.replace("epochs=3", "epochs=3, initial_epoch=0"),
    "compile again": f'model.compile("adam", "mse")\n{CALL}',
    "a backup of its own": CALL.replace("verbose=0", f"verbose=0, {OWN_BACKUP}"),
    "saved and loaded": f'model.save("new.keras")\nmodel = tf.keras.models.load_model("new.keras")\n{CALL}',
    "a new model with the weights": NEW + CALL,
}
here = session.setup.but(strategy="default", devices=1)
programs = session.variants("broken", CALL, WAYS)
whole = {name: text.replace("\nstart(4)", "\n# start(4)") for name, text in programs.items()}
stopped = session.prints(programs, [here.but(keras=3), here.but(keras=2)])
never = session.prints(whole, [here.but(keras=3)])


def epochs(words):
    return "raises" if "Error" in words else words.split()[-1]


EPOCHS = {name: [epochs(words) for words in (*never[name], *stopped[name])] for name in WAYS}
COLUMNS = ["not stopped", "stopped", "stopped,\nKeras 2"]
figures.words(
    EPOCHS, COLUMNS, ("0", "raises"), "How many of three epochs does the next `fit` make?"
)

# %% tags=["figure"]
# A model that takes five steps in each of four epochs is stopped twice, in epochs 3 and 3, and makes the rest in a third run.
TWICE = """import contextlib

import tensorflow as tf


class Stop(tf.keras.callbacks.Callback):
    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def on_train_batch_end(self, batch, logs=None):
        if int(self.model.optimizer.iterations.numpy()) == self.steps:
            raise KeyboardInterrupt


for steps in (12, 14, 99):
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    backup = tf.keras.callbacks.BackupAndRestore("backup", save_freq=FREQUENCY)
    with contextlib.suppress(KeyboardInterrupt):
        x = tf.ones((20, 1))
        model.fit(x, x, batch_size=4, epochs=4, verbose=0, callbacks=[backup, Stop(steps)])
print("epochs of the third run:", len(model.history.epoch))
"""
programs = {
    f"save_freq={frequency}": TWICE.replace("FREQUENCY", frequency)
    for frequency in ('"epoch"', "1")
}
printed = session.prints(programs, [here.but(keras=3), here.but(keras=2)])
EPOCHS = {name: [words.split()[-1] for words in row] for name, row in printed.items()}
figures.words(EPOCHS, ["Keras 3", "Keras 2"], "4", "How many epochs does a third run of four make?")

# %% [markdown]
# ## Try other setups
#
# With Keras 2 the last call raises. A strategy changes nothing.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, on two mirrored devices, and with the other version of Keras:

# %% tags=["table"]
two = session.setup.but(strategy="mirrored", devices=2)
session.table([here, two, here.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# The base of this model is frozen at first. Then it is to be fine-tuned for two epochs. Change the program so that this happens
# after a restart, too, and it prints `True`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM54](fm54_callbacks_forget.ipynb): after a restart callbacks and a shuffle begin from the start, and batches are trained
#   twice.
# - [FM42](fm42_input_runs_out.ipynb): an epoch makes no step because the data have ended.
# - [FM29](fm29_optimizer_state_lost.ipynb): a restart without the state of the optimizer.
# - [FM10](fm10_variable_unknown_to_optimizer.ipynb): a layer that is unfrozen and still not trained.
