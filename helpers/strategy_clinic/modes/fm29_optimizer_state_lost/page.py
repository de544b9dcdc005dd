# %% [markdown]
# # FM29. Resumed training restarts the optimizer: the loss jumps after loading
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `kernel after two epochs: 0.75` | `load_weights` or `set_weights`, or `compile` after `load_model`; 1.0 without a restart | 2, 3 |
# | `Skipping variable loading for optimizer …` | a warning of `load_weights`, if the optimizer is not built | 3 |
# | `No training configuration found in the save file …` | a warning of `load_model`: the model in an `.h5` file was not compiled | 2, 3 |
# | `ValueError: Unknown variable: <Variable path=…>. …` | `fit` after `load_model` of an `.h5` file: see FM10 | 3 |
#
# The weights are loaded, and the state of the optimizer is not. The next step is the first step of a new optimizer.
#
# *Wrong result without an error, on Keras 2 and 3, under every strategy, where a format or a call leaves the optimizer out.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm29",
    slug="optimizer_state_lost",
    title="Resumed training restarts the optimizer: the loss jumps after loading",
    sees="a loaded model predicts what it should, and `fit` starts with a new optimizer",
    fix="load a file that contains the optimizer (`.keras`, a checkpoint) and do not compile again, or use `BackupAndRestore`",
    document="004",
    switches=("save_format", "keras"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'kernel after two epochs: 0.75', and right is 'kernel after two epochs: 1.0'",
            formats=("weights_h5", "npz"),
        ),
    ),
    prints="kernel after two epochs: 1.0",
    exercise_prints="steps in all: 2\nkernel after two epochs: 0.875",
    unavailable={
        "multi_worker": "its workers would write the same file at the same time",
        "h5": "on Keras 3 `fit` raises `Unknown variable` after such a file, which is FM10",
        "saved_model": "the loaded object has functions to call, and no `fit`",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "weights_h5"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm29", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# The program trains for one epoch of one step, saves the weights, and continues with a model that loads them. Without the save
# and the load, the kernel after the second epoch is 1.0.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# A `.keras` file contains the model, the optimizer and its state. Do not compile the loaded model again: that creates a new
# optimizer. To change the learning rate, set `loaded.optimizer.learning_rate`.
#
# Print `loaded.optimizer.iterations` after the load. If it is 0, the optimizer is new.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# With `fit`, the callback `BackupAndRestore("backup")` is simpler: start the same script again after a crash, and it continues. A
# backup that stays in the folder, from a crash or from `delete_checkpoint=False`, makes the next training skip its epochs.
#
# In a custom training loop use `tf.train.Checkpoint(model=model, optimizer=optimizer)`; with `model=model` alone the state is
# not in the file. Call `optimizer.build(model.trainable_variables)` in the scope before `restore`. An optimizer that is built
# later gets its slot variables then, from the file, which must still be there; on Keras 3 before 3.16 the first step under
# `MirroredStrategy` can raise ([FM32](fm32_optimizer_built_in_replica.ipynb)).
#
# ## Why
#
# Training has a state in addition to the weights. SGD with momentum has one slot variable for each weight, and Adam has two.
# Every optimizer counts its steps, and a learning rate schedule reads this counter. These variables belong to the optimizer:
# `get_weights()` does not return them. A new optimizer starts with zeros, so there is no error. Plain SGD with a constant
# learning rate has nothing to lose.
#
# A `.weights.h5` file contains the state, but only an optimizer that is already built can load it. Otherwise `load_weights`
# warns and leaves the optimizer as it is. Call `model.optimizer.build(model.trainable_variables)` before `load_weights`.
#
# It also warns if other layers are trainable than in the saved model, since the optimizer has another number of variables. Build
# and load with the same layers trainable, and freeze some after that. If the number is equal by chance, nothing warns, and
# variables of equal shape get the state of others.
#
# `load_model(..., compile=False)` loads no optimizer either. From an `.h5` file Keras 3 loads no slot variables.

# %% tags=["figure"]
# The program above with other lines to save and load.
from strategy_clinic import figures

LINES = """model.fit(inputs, labels, verbose=0)
model.save("resume.keras")  # fixed: with the optimizer and its state

loaded = tf.keras.models.load_model("resume.keras")  # fixed
loaded.fit(inputs, labels, verbose=0)
"""
FIRST, SECOND = "model.fit(inputs, labels, verbose=0)\n", "loaded.fit(inputs, labels, verbose=0)\n"
KERAS = 'model.save("a.keras")\nloaded = tf.keras.models.load_model("a.keras")\n'
WEIGHTS = 'model.save_weights("a.weights.h5")\nloaded = make_model()\n'
COMPILE = 'loaded.compile(tf.keras.optimizers.SGD(0.25, momentum=0.5), "mse")\n'
BACKUP = 'tf.keras.callbacks.BackupAndRestore("backup", delete_checkpoint=False)'
WAYS = {
    "load_model": FIRST + KERAS + SECOND,
    "load_model, compile": FIRST + KERAS + COMPILE + SECOND,
    "load_weights": FIRST + WEIGHTS + 'loaded.load_weights("a.weights.h5")\n' + SECOND,
    "build, load_weights": FIRST
    + WEIGHTS
    + 'loaded.optimizer.build(loaded.trainable_variables)\nloaded.load_weights("a.weights.h5")\n'
    + SECOND,
    "set_weights": FIRST
    + "loaded = make_model()\nloaded.set_weights(model.get_weights())\n"
    + SECOND,
    "BackupAndRestore": f"model.fit(inputs, labels, verbose=0, callbacks=[{BACKUP}])\n"
    "loaded = make_model()\n"
    f"loaded.fit(inputs, labels, epochs=2, verbose=0, callbacks=[{BACKUP}])\n",
}
here = session.setup.but(strategy="default", devices=1, save_format="weights_h5")
BOTH = [here.but(keras=3), here.but(keras=2)]
printed = session.prints(session.variants("fixed", LINES, WAYS), BOTH)
KERNELS = {way: [float(words.split(": ")[1]) for words in row] for way, row in printed.items()}
figures.numbers(KERNELS, ["Keras 3", "Keras 2"], [1.0, 1.0], "The kernel after two epochs")

# %% [markdown]
# ## Try other setups
#
# Change the save format. `keras` and `checkpoint` bring the optimizer back, and `weights_h5` and `npz` do not.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs in four formats, and with the other version of Keras. The repaired program always writes `.keras`:

# %% tags=["table"]
session.table(
    [
        here,
        *(here.but(save_format=name) for name in ("keras", "checkpoint", "npz")),
        here.but(keras=session.setup.other_keras),
    ]
)

# %% [markdown]
# ## Exercise
#
# This program loads a `.keras` file with the state of the optimizer and halves the learning rate. Change one line so that the
# training continues. It should print `steps in all: 2` and `kernel after two epochs: 0.875`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM09](fm09_optimizer_slots_missing.ipynb): a checkpoint with slot variables, and an optimizer without them.
# - [FM26](fm26_replica_count_changed.ipynb): training resumes on another number of devices, with another batch.
# - [FM05](fm05_untracked_variable.ipynb): a variable that no checkpoint of model and optimizer contains.
# - [FM46](fm46_restore_overwrites_hyperparameters.ipynb): a restore that brings back the old learning rate.
# - What an answer on `load_model` says: [document 004](documents/004_load_model.ipynb).
