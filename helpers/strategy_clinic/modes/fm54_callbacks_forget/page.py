# %% [markdown]
# # FM54. `ModelCheckpoint`, `EarlyStopping` after a restart: the best value is forgotten
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `validation loss of best.keras: 0.276` | stopped, started again with `BackupAndRestore`; 0.016 without a stop | 2, 3 |
# | no message: `val_loss improved from None to 0.27604` | the first epoch after the restart, with `verbose=1` | 2, 3 |
# | no message: `epochs in all: 8` | `EarlyStopping`, which ends it after 5 without a stop | 2, 3 |
#
# A backup contains the model, the optimizer and the number of the epoch. It contains nothing that another callback remembers.
#
# *Wrong result without an error, on Keras 2 and 3, with a strategy and without one.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm54",
    slug="callbacks_forget",
    title="`ModelCheckpoint`, `EarlyStopping` after a restart: the best value is forgotten",
    sees="after a restart a worse model replaces the best file, or early stopping waits longer",
    fix="give `ModelCheckpoint` an `initial_value_threshold`; let a subclass of the others keep `best`, `wait` and `cooldown_counter` in a file",
    document="004",
    switches=("strategy", "keras"),
    symptoms=(Symptom("SilentFailure", r"it prints 'validation loss of best\.keras: 0\.276'"),),
    prints="validation loss of best.keras: 0.016",
    exercise_prints="epochs in all: 5",
    unavailable={
        "one_device": "Keras 2 refuses `BackupAndRestore` there",
        "central_storage": "Keras 2 refuses `BackupAndRestore` there",
        "multi_worker": "`fit` of Keras 3 does not run on several workers",
        "parameter_server": "`fit` does not accept arrays there",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm54", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# `start` is what a script does each time that it is started. The first call ends after four epochs, as if the process had been
# stopped, and the second continues. The validation loss is smallest in the second epoch and grows from then on, so `best.keras`
# should stay as it is.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Evaluate the file of the best model, and pass the result as `initial_value_threshold`. If you monitor another value, take this
# one from the results of `evaluate(..., return_dict=True)`.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# `EarlyStopping` and `ReduceLROnPlateau` have no such argument, and forget even if the same object is passed to `fit` again.
# This class writes all that they count to a file after each epoch, and reads it when `fit` begins. With it `ModelCheckpoint`
# needs no evaluation, either.
#
# ```python
# import json
#
#
# class Remembering:
#     def on_train_begin(self, logs=None):
#         super().on_train_begin(logs)
#         self.file = f"{type(self).__name__}_{self.monitor}.json"
#         if tf.io.gfile.exists(self.file):
#             vars(self).update(json.loads(tf.io.read_file(self.file).numpy()))
#
#     def on_epoch_end(self, epoch, logs=None):
#         super().on_epoch_end(epoch, logs)
#         counted = {"best", "wait", "cooldown_counter"} & vars(self).keys()
#         values = {name: vars(self)[name] for name in counted}
#         tf.io.write_file(self.file, json.dumps(values, default=float))
#
#
# class Stopping(Remembering, tf.keras.callbacks.EarlyStopping):
#     pass  # the same two lines for ReduceLROnPlateau and ModelCheckpoint
# ```
#
# The learning rate is not in this file. It is a variable of the optimizer, which `BackupAndRestore`, a checkpoint, `.keras` and
# `.h5` files keep, and `.weights.h5` on Keras 3 only. The callback that saves must come after `ReduceLROnPlateau` in the list:
# before it, it saves the rate that was not lowered yet.
#
# Delete the files before a new training, as you do with the backup. Do not use `restore_best_weights` then: the best weights
# are forgotten. Load the file of `ModelCheckpoint` instead.
#
# ## Why
#
# These callbacks keep their best value in Python attributes. `ModelCheckpoint` begins without one, so its first epoch is always
# the best. The others set theirs back in `on_train_begin`. After the restart a worse model replaces the file, and patience is
# counted from zero: a program that is stopped often enough never stops early.
#
# The order of the data begins again, too: that is [FM77](fm77_data_order_repeats.ipynb).
#
# On Keras 3, `BackupAndRestore(save_freq=N)` begins an epoch again at its first batch, and trains the batches before the stop twice.
# The documentation says that "the callback saves the checkpoint every `save_freq` batches", and Keras 2 goes on with the next batch.
# It needs no strategy. That is a bug, not reported yet; `upstream/backup_repeats_batches.md` is ready.
#
# The table shows what other callbacks do in up to six epochs.

# %% tags=["figure"]
# The program above with other callbacks: not stopped, stopped after four epochs, and with the class above.
from strategy_clinic import figures

own = session.texts["broken"]
head = own[: own.index("start(4)")]
BEST = 'tf.keras.callbacks.ModelCheckpoint("best.keras", save_best_only=True)  # wrong: no value'
REMEMBERING = """
import json


class Remembering:
    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        self.file = f"{type(self).__name__}_{self.monitor}.json"
        if tf.io.gfile.exists(self.file):
            vars(self).update(json.loads(tf.io.read_file(self.file).numpy()))

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        counted = {"best", "wait", "cooldown_counter"} & vars(self).keys()
        values = {name: vars(self)[name] for name in counted}
        tf.io.write_file(self.file, json.dumps(values, default=float))
"""
VALUES = {
    "EarlyStopping": "'epochs:', int(model.optimizer.iterations)",
    "ReduceLROnPlateau": "'rate:', round(float(model.optimizer.learning_rate), 4)",
}
COLUMNS = ["not stopped", "stopped", "with the class"]
here = session.setup.but(strategy="default", devices=1)
CELLS = {}
for kind, value in VALUES.items():
    named = f"\n\nclass Keeping(Remembering, tf.keras.callbacks.{kind}):\n    pass\n"
    text = head.replace("best])", f"best])\n    print({value})").replace(
        "[backup, best]", "[best, backup]"
    )
    plain = text.replace(BEST, f'tf.keras.callbacks.{kind}("val_loss", patience=3)')
    kept = text.replace(BEST, 'Keeping("val_loss", patience=3)').replace(
        "\n\n\ndef start", f"\n{REMEMBERING}{named}\n\ndef start"
    )
    ways = [f"{plain}start(6)\n", f"{plain}start(4)\nstart(6)\n", f"{kept}start(4)\nstart(6)\n"]
    printed = session.prints(dict(zip(COLUMNS, ways)), [here])
    CELLS[kind] = [printed[column][0].splitlines()[-1] for column in COLUMNS]
WRONG = [row[1] for row in CELLS.values() if row[1] != row[0]]
figures.words(CELLS, COLUMNS, WRONG, "How does the training end?")

# %% [markdown]
# ## Try other setups
#
# The failure is the same with and without a strategy, and with both versions of Keras.

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
# Without a stop, `EarlyStopping` with a patience of three ends this training after five epochs. Change the program so that it
# prints `5` although it was stopped after four.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM29](fm29_optimizer_state_lost.ipynb): the state of the optimizer is lost, and the loss jumps after a restart.
# - [FM46](fm46_restore_overwrites_hyperparameters.ipynb): a restore brings back a learning rate that you have changed.
# - [FM05](fm05_untracked_variable.ipynb): a variable of your own that no checkpoint contains.
# - [FM77](fm77_data_order_repeats.ipynb): the order of the examples begins again.
# - [FM26](fm26_replica_count_changed.ipynb): training continues on another number of devices.
