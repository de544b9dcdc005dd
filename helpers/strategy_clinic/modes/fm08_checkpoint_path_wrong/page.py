# %% [markdown]
# # FM08. `Failed to find any matching files for`: restoring the path that was given to `save`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `NotFoundError: … Unsuccessful TensorSliceReader constructor: Failed to find any matching files for checkpoints/training Please double-check that the path is correct. You may be missing the checkpoint suffix (e.g. the '-1' in 'path/to/ckpt-1').` | `restore` of the prefix, or of a checkpoint that does not exist | 2, 3 |
# | `DataLossError: Unable to open table file checkpoints: FAILED_PRECONDITION: checkpoints; Is a directory: perhaps your file is in a different file format …` | `restore` of the folder | 2, 3 |
# | `DataLossError: Unable to open table file … DATA_LOSS: not an sstable (bad magic number): perhaps your file is in a different file format …` | `restore` of a file that ends in `.data-…`, or of the file named `checkpoint` | 2, 3 |
# | `OpError: file is too short to be an sstable` | `restore`; the `.index` file is empty or was cut off | 2, 3 |
# | `AssertionError: No checkpoint specified (save_path=None); nothing is being restored.` | `assert_consumed` of `restore(None)`: `latest_checkpoint` found none | 2, 3 |
# | `ValueError: Can't load save_path when it is None.` | the same with a `Saver` of TensorFlow 1 | 2, 3 |
#
# `save` appends a number to the path, and `restore` needs the path with that number.
#
# *Raises on Keras 2 and 3, under every strategy. With `None` or an `.index` file, `restore` raises nothing and restores
# nothing.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm08",
    slug="checkpoint_path_wrong",
    title="`Failed to find any matching files for`: restoring the path that was given to `save`",
    sees="`restore` finds no file where `save` has just written one, or it restores nothing without an error",
    fix="restore `tf.train.latest_checkpoint(folder)`, and call `assert_consumed()` on what `restore` returns",
    document="001",
    switches=(),
    symptoms=(Symptom("NotFoundError", r"You may be missing the checkpoint suffix"),),
    prints="restored: True",
    exercise_prints="restored: True",
    unavailable={"multi_worker": "there each worker must save to a folder of its own"},
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm08", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# It saves a checkpoint. Then a new model, as after a restart, should get the saved weights.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# `tf.train.latest_checkpoint(folder)` returns the path of the newest checkpoint. `save` returns the same path.
# `assert_consumed()` raises if a value of the file went nowhere, or if a variable of the program got no value. On Keras 3 it
# does not see layers in a Python list, see [FM65](fm65_layers_in_a_list.ipynb).
#
# It needs all variables at that moment. Call a subclass of `Model` on a batch before `restore`, and build the optimizer if it is
# in the checkpoint: `optimizer.build(model.trainable_variables)`. Otherwise it raises `Unresolved object in checkpoint`.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# In a first run there is nothing to restore. A `CheckpointManager` handles that, and deletes old checkpoints:
#
# ```python
# manager = tf.train.CheckpointManager(checkpoint, "checkpoints", max_to_keep=3)
# path = manager.restore_or_initialize()  # None in a first run
# ...
# manager.save()
# ```
#
# It asserts nothing, so log the path: `None` in a run that should resume means a wrong folder. To choose the whole name
# yourself, use `checkpoint.write("checkpoints/best")` and `checkpoint.read("checkpoints/best")`, which append no number.

# %% [markdown]
# ## Why
#
# The argument of `save` is a prefix. `save` appends the number of the call, so that a later call does not overwrite an earlier
# checkpoint. The first one is `training-1`, and it consists of the files `training-1.index` and `training-1.data-…`. `restore`
# expects `training-1`: not the prefix, not the folder, and not the name of a file. `latest_checkpoint` finds that name in a file
# that is called `checkpoint`, which each `save` rewrites.
#
# Two wrong paths raise nothing. `latest_checkpoint` returns `None` for a folder without checkpoints, and `restore(None)`
# restores nothing. The `.index` file is read as a checkpoint of TensorFlow 1, in which no variable matches. The asserts raise
# in both cases.
#
# `not an sstable` can also mean that an `.index` file was cut off, as when the program was killed while it saved.
# `latest_checkpoint` returns the one before it, because `save` rewrites the file `checkpoint` last.
#
# `latest_checkpoint` finds TensorFlow's checkpoints only, and the callback `ModelCheckpoint` of Keras 3 writes `.weights.h5`.
#
# The table restores one variable from each path. See
# [`Checkpoint.save`](https://www.tensorflow.org/api_docs/python/tf/train/Checkpoint#save).

# %% tags=["figure"]
# What restore does with seven paths, and whether the value of the variable arrives.
import tempfile

import tensorflow as tf

from strategy_clinic import figures


def tries(path):
    variable = tf.Variable(0.0)
    try:
        tf.train.Checkpoint(variable=variable).restore(path)
    except (tf.errors.NotFoundError, tf.errors.DataLossError):
        return ["raises", "missing"]
    return ["accepts", "restored" if float(variable) == 5.0 else "missing"]


with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as empty:
    saved = tf.train.Checkpoint(variable=tf.Variable(5.0)).save(f"{folder}/training")
    PATHS = {
        "latest_checkpoint(folder)": tries(tf.train.latest_checkpoint(folder)),
        "what save returned": tries(saved),
        "the prefix": tries(f"{folder}/training"),
        "the folder": tries(folder),
        "the .data file": tries(f"{saved}.data-00000-of-00001"),
        "the .index file": tries(f"{saved}.index"),
        "latest_checkpoint(empty)": tries(tf.train.latest_checkpoint(empty)),
    }
figures.words(PATHS, ["restore", "value"], ["raises", "missing"], "Which path restores?")

# %% [markdown]
# ## Try other setups
#
# The failure is the same under every strategy and with both versions of Keras: the path is wrong before a variable is read.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, under two strategies, and with the other version of Keras:

# %% tags=["table"]
one = session.setup.but(strategy="default", devices=1)
two = session.setup.but(strategy="mirrored", devices=2)
SETUPS = [one, two, two.but(strategy="central_storage")]
session.table([*SETUPS, one.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# This program should resume too. Nothing raises, and it starts with new weights. Find out which path it restores.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM05](fm05_untracked_variable.ipynb): the path is right, and a variable is not in the file.
# - [FM06](fm06_architecture_changed.ipynb): the path is right, and the model is a different one.
# - [FM35](fm35_restore_before_build.ipynb): the path is right, and the model has no variables yet.
# - [FM25](fm25_load_outside_scope.ipynb): all values arrive, on one device only.
# - [FM04](fm04_weights_path_refused.ipynb): file names that `save_weights` refuses.
# - What an answer on checkpoints says: [document 001](documents/001_checkpoints.ipynb).
