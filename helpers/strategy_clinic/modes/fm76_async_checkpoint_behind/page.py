# %% [markdown]
# # FM76. A restore reads an older checkpoint: the last save is not written yet
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `step after restoring: 2`, in place of 3 | `restore(manager.latest_checkpoint)` after an asynchronous save | 2, 3 |
# | no message: `latest_checkpoint` is `None` | `tf.train.latest_checkpoint` after the first asynchronous save | 2, 3 |
# | `NotFoundError: … Failed to find any matching files for saved/…` | `restore(path)` of another `Checkpoint`, with the path that `save` returned: see FM08 | 2, 3 |
# | `ValueError: … tf.function only supports singleton tf.Variables created on the first call. …` | the second asynchronous `save` of a model, a layer or an optimizer of Keras 3 | 3 |
#
# With `experimental_enable_async_checkpoint=True`, `save` copies the values and returns. A thread writes the file, and names it as
# the latest one when it is complete. Who asks before gets the one before.
#
# *Lost state without an error, on Keras 2 and 3, with every strategy or none.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm76",
    slug="async_checkpoint_behind",
    title="A restore reads an older checkpoint: the last save is not written yet",
    sees="with asynchronous checkpoints, a restore goes back one save too far, or finds none",
    fix="call `manager.sync()`, or `checkpoint.sync()`, before you ask for the latest checkpoint or end the process",
    document="004",
    switches=("strategy",),
    symptoms=(Symptom("SilentFailure", r"it prints 'step after restoring: 2'"),),
    prints="step after restoring: 3",
    exercise_prints="training goes on at step 40",
    unavailable={
        "multi_worker": "its workers would write the same file at the same time",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm76", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# Three steps, each saved. Then the last save should bring back step 3. The table stands for the weights of a model.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Wait for the thread where you need the file.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# Without a manager, call `checkpoint.sync()` before `tf.train.latest_checkpoint(folder)`. The path that `save` returns can be
# restored by the same `Checkpoint` without `sync`: it waits itself. Another `Checkpoint`, and another process, do not wait.
#
# The end of the program waits for the thread, also after an exception. A process that is killed loses its last save: call
# `sync` when a signal announces the end.
#
# For models of Keras 3 the second save with the option raises, on one device, too. Save the values that Keras keeps,
# `tf.train.Checkpoint(values=[v.value for v in model.variables])`, with `model.variables + model.optimizer.variables` for a
# built optimizer, too, or save without the option. Keras 2 saves its models with the option, also by
# `ModelCheckpoint(…, save_weights_only=True, options=options)`. `clinic examine` does not name this mode.
#
# ## Why
#
# With the option, `save` waits for the thread of the *save before*, copies the values to the CPU, and starts a thread. That
# thread writes the file and then the file `checkpoint`, which names the latest one. So after `save` has returned, only the save
# before is complete. The file has the values of the time of the call.
#
# For a variable of Keras 3, `_copy_trackable_to_cpu` in `keras/src/backend/tensorflow/core.py` makes a new `tf.Variable` for
# each save, in a `tf.function`: see [FM12](fm12_variables_recreated.ipynb).
#
# `keras.callbacks.OrbaxCheckpoint` saves in the background, too. On Keras 3.15 with Orbax 0.12.8:
#
# - A process that is killed in `fit`, or ends by an exception, leaves its last save as `2.orbax-checkpoint-tmp`, and loading
#   takes the one before. `callback.wait_until_finished()` waits.
# - With a relative `directory` no save is complete. Only the second save raises `Checkpoint path should be absolute`.
# - Under `MirroredStrategy` `fit` raises `int() argument must be … not 'MirroredVariable'`.
# - `load_weights` sets variables of the same `path`, such as `sequential/dense/kernel`, and leaves others, silently: the
#   second model of a process is `sequential_1`. It also sets a built optimizer.
# - `load_model` leaves weights and slots of a `Sequential` model as initialized, silently
#   ([keras#23251](https://github.com/keras-team/keras/issues/23251)). `load_weights` in a new process sets them.
#
# The tables say which step comes back. See [`tf.train.CheckpointOptions`](https://www.tensorflow.org/api_docs/python/tf/train/CheckpointOptions).

# %% tags=["figure"]
# The program above with other ways to save, to wait and to restore.
from strategy_clinic import figures

text = session.texts["broken"]
SAVE, LATEST = "manager.save(options=options)", "manager.latest_checkpoint"
SPOIL = "step.assign(-1)"
DIRECT = text.replace(SAVE, 'path = checkpoint.save("saved/a", options=options)')
OTHER = f"{SPOIL}\ncheckpoint = tf.train.Checkpoint(step=step)"
FROM_FOLDER = DIRECT.replace(LATEST, 'tf.train.latest_checkpoint("saved")')
WAYS = {
    "manager, asynchronous": text,
    "manager, not asynchronous": text.replace("=True", "=False"),
    "manager, sync": session.texts["fixed"],
    "checkpoint.save, latest_checkpoint": FROM_FOLDER,
    "checkpoint.save, sync, latest_checkpoint": FROM_FOLDER.replace(
        SPOIL, f"{SPOIL}\ncheckpoint.sync()"
    ),
    "checkpoint.save, its path": DIRECT.replace(LATEST, "path"),
    "checkpoint.save, its path, another Checkpoint": DIRECT.replace(LATEST, "path").replace(
        SPOIL, OTHER
    ),
    "a table of one number": text.replace("5_000_000", "1"),
}
here = session.setup.but(strategy="default", devices=1, save_format="checkpoint")
four = here.but(strategy="mirrored", devices=4)
PLACES = {"no strategy": here, "mirrored x4": four}
printed = session.prints(WAYS, list(PLACES.values()))
FOUND = {
    way: ["step " + words.split()[-1] if "Error" not in words else words for words in row]
    for way, row in printed.items()
}
figures.words(FOUND, list(PLACES), ("step 2", "NotFoundError"), "Which step is restored?")

# %% tags=["figure"]
# A model with an Embedding in the checkpoint, on both versions of Keras.
MODEL = """import tensorflow as tf

strategy = tf.distribute.get_strategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Embedding(4, 1), tf.keras.layers.Dense(1)])
    model.build((None, 2))
    step = tf.Variable(0)
options = tf.train.CheckpointOptions(experimental_enable_async_checkpoint=True)
checkpoint = tf.train.Checkpoint(step=step, model=model)
for number in (1.0, 2.0, 3.0):
    model.set_weights([number + 0 * weight for weight in model.get_weights()])
    checkpoint.save("saved/a", options=options)
checkpoint.sync()
model.set_weights([0 * weight for weight in model.get_weights()])
checkpoint.restore(tf.train.latest_checkpoint("saved"))
print("restored:", model.get_weights()[0][0][0], model.get_weights()[1][0][0])
"""
VALUES = "values=[v.value for v in model.variables]"
OF_MODEL = {
    "model=model": MODEL,
    "values=[v.value …]": MODEL.replace("model=model", VALUES),
    "model=model, not asynchronous": MODEL.replace("=True", "=False"),
}
KERAS_3 = {"no strategy": here.but(keras=3), "mirrored x4": four.but(keras=3)}
ALL = {**KERAS_3, "Keras 2": here.but(keras=2), "Keras 2, x4": four.but(keras=2)}
printed = session.prints(OF_MODEL, list(ALL.values()))
RESTORED = {
    way: ["restored" if words == "restored: 3.0 3.0" else words for words in row]
    for way, row in printed.items()
}
RESTORED["values=[v.value …]"][2:] = ["Keras 3 only"] * 2
figures.words(RESTORED, list(ALL), ("ValueError",), "Does a third save work?")

# %% tags=["tests"]
# How a process ends decides whether the last save is there.
ENDED = """
import subprocess, sys
text = open("ends.py").read()
for end in ("sys.exit(0)", "raise KeyError", "os._exit(0)"):
    subprocess.run([sys.executable, "-c", text + end], capture_output=True)
    print(tf.train.latest_checkpoint("saved")[-1], end=" ")
"""
SAVING = "import os, sys\n" + text[: text.index(SPOIL)]
ENDS = f"import tensorflow as tf\nopen('ends.py', 'w').write({SAVING!r})\n{ENDED}"
assert session.prints({"ends": ENDS}, [here])["ends"] == ["3 3 2"]

# %% [markdown]
# ## Try other setups
#
# The failure is the same under every strategy.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, on two mirrored devices and four, under central storage, and with the other version of Keras:

# %% tags=["table"]
two = here.but(strategy="mirrored", devices=2)
OTHERS = [two.but(strategy="central_storage"), here.but(keras=session.setup.other_keras)]
session.table([here, two, two.but(devices=4), *OTHERS])

# %% [markdown]
# ## Exercise
#
# A second part of the program should go on where the first has saved, and begins at 0. Change it so that it goes on at step 40.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM08](fm08_checkpoint_path_wrong.ipynb): a path at which there is no checkpoint.
# - [FM35](fm35_restore_before_build.ipynb): a restore that sets nothing, because the model has no variables yet.
# - [FM54](fm54_callbacks_forget.ipynb): callbacks that begin from zero after a restart.
# - [FM12](fm12_variables_recreated.ipynb): a function that creates variables on its second call.
