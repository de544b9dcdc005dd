# %% [markdown]
# # FM04. `The filename must end in .weights.h5`: `save_weights` without this ending
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `` ValueError: The filename must end in `.weights.h5`. Received: filepath=./my_checkpoint `` | `save_weights` | 3 |
# | `` ValueError: When using `save_weights_only=True` in `ModelCheckpoint`, the filepath provided must end in `.weights.h5` `` | `ModelCheckpoint` | 3 |
# | `` ValueError: The filepath provided must end in `.keras` (Keras model format). `` | `ModelCheckpoint` | 3 |
# | `` ValueError: Invalid filepath extension for saving. Please add either a `.keras` extension … `` | `model.save` | 3 |
# | `TypeError: Model.save_weights() got an unexpected keyword argument 'save_format'` | `save_weights(path, save_format="tf")` | 3 |
# | `` ValueError: The `save_format` argument is deprecated in Keras 3. Please remove this argument … `` | `model.save(path, save_format="tf")` | 3 |
#
# Keras 2 chose the format by the ending, and wrote a TensorFlow checkpoint for a name without one. Keras 3 has one format for
# weights.
#
# *Raises on Keras 3, under every strategy and without one. Keras 2 accepts every name.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm04",
    slug="weights_path_refused",
    title="`The filename must end in .weights.h5`: `save_weights` without this ending",
    sees='`save_weights("./my_checkpoint")` raises: the filename must end in `.weights.h5`',
    fix="end the path in `.weights.h5` for weights and `.keras` for a model; for a checkpoint, use `tf.train.Checkpoint`",
    document="000",
    switches=("keras",),
    symptoms=(Symptom("ValueError", r"The filename must end in `\.weights\.h5`", keras=(3,)),),
    prints="same weights: True",
    exercise_prints="same weights: True",
    unavailable={
        "multi_worker": "each of its processes would need a file of its own",
        "parameter_server": "`fit` accepts no arrays under it",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm04", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# `save_weights("./my_checkpoint")` is in many tutorials. Keras 3 trains as Keras 2 did, and raises at this line after the
# training. When the script ends, the trained weights are lost.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# In a notebook nothing is lost: call `model.save_weights("my.weights.h5")` in the next cell.
#
# End the path in `.weights.h5`. `ModelCheckpoint(save_weights_only=True)` needs this ending, too, and without this argument it
# needs `.keras` or `.h5`. Remove `save_format`.
#
# If you want a TensorFlow checkpoint, `write` and `read` keep the name that you choose. `save` appends a number, see
# [FM08](fm08_checkpoint_path_wrong.ipynb).
#
# ```python
# tf.train.Checkpoint(model=model).write("./my_checkpoint")
# tf.train.Checkpoint(model=model).read("./my_checkpoint")
# ```
#
# Keras 3 cannot read a checkpoint that `save_weights` of Keras 2 wrote: `load_weights` refuses it, and
# `tf.train.Checkpoint(model).restore` raises nothing and leaves kernels random. Convert it on Keras 2: install `tf_keras`, and
# set the environment variable `TF_USE_LEGACY_KERAS=1` before TensorFlow is imported. This keeps the weights, and not the state
# of the optimizer:
#
# ```python
# model = make_model()
# model.load_weights("./my_checkpoint")
# model.save_weights("my.weights.h5")  # Keras 3 reads this file
# ```

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# Keras 2 chooses by the ending: `.weights.h5` gives the format of Keras 3; `.h5`, `.hdf5` and `.keras` give an older HDF5 file;
# anything else gives a TensorFlow checkpoint.
#
# Keras 3 also runs on JAX and PyTorch, and has a format of its own. `save_weights` checks the ending before it reads a weight,
# so the strategy does not matter. A whole model has the endings `.keras` and `.h5`. `save("my.weights.h5")` writes a whole
# model, which `load_weights` cannot read.
#
# Save outside of `strategy.run`: in a step saving works eagerly, and raises in a trace.
#
# The table tries three calls with four names. `works` means that the file is written, and that its counterpart reads the weights
# back. See [the guide to saving](https://www.tensorflow.org/guide/keras/serialization_and_saving).

# %% tags=["figure"]
# Saves with three calls under four names, and loads by the counterpart of each call.
import tempfile

import numpy as np
import tensorflow as tf

from strategy_clinic import figures


def make_model():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    model.compile(optimizer="sgd", loss=tf.keras.losses.MeanSquaredError())
    model.optimizer.build(model.trainable_variables)
    return model


def by_save_weights(model, path):
    again = make_model()
    model.save_weights(path)
    again.load_weights(path)
    return again


def by_save(model, path):
    model.save(path)
    return tf.keras.models.load_model(path)


def by_checkpoint(model, path):
    again = make_model()
    tf.train.Checkpoint(model=model).write(path)
    tf.train.Checkpoint(model=again).read(path).assert_existing_objects_matched()
    return again


def same_weights(model, again):
    pairs = zip(model.get_weights(), again.get_weights(), strict=True)
    return all(np.array_equal(*pair) for pair in pairs)


def comes_back(way, name):
    model = make_model()
    with tempfile.TemporaryDirectory() as folder:
        try:
            return same_weights(model, way(model, f"{folder}/{name}"))
        except ValueError:
            return False


CALLS = {"save_weights": by_save_weights, "save": by_save, "Checkpoint.write": by_checkpoint}
NAMES = ["my_checkpoint", "my.h5", "my.weights.h5", "my.keras"]
BACK = {name: [comes_back(way, name) for way in CALLS.values()] for name in NAMES}
figures.grid(BACK, list(CALLS), "works", "refused", "Which call accepts which file name?")

# %% [markdown]
# ## Try other setups
#
# On Keras 2 the broken program works. The strategy and the number of devices change nothing.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy and on two devices, each on Keras 3 and on Keras 2:

# %% tags=["table"]
alone = session.setup.but(strategy="default", devices=1)
mirrored = session.setup.but(strategy="mirrored", devices=2)
session.table([each.but(keras=keras) for keras in (3, 2) for each in (alone, mirrored)])

# %% [markdown]
# ## Exercise
#
# This script saves after every epoch and continues from the last file. Repair its path. Then one more line raises, since
# `tf.train.latest_checkpoint` finds TensorFlow checkpoints only.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% tags=["tests"]
# Tests what Keras 3 does with a checkpoint of Keras 2.
OLD = """import tensorflow as tf
import tf_keras

model = tf_keras.Sequential([tf_keras.Input((3,)), tf_keras.layers.Dense(2)])
model.set_weights([tf.ones((3, 2)), tf.ones(2)])
model.save_weights("./of_keras_2")
loaded = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
tf.train.Checkpoint(loaded).restore("./of_keras_2").expect_partial()
print(bool((loaded.get_weights()[0] == 1.0).all()))
try:
    loaded.load_weights("./of_keras_2")
except ValueError:
    print("refused")
"""
assert session.prints({"": OLD}, [alone.but(keras=3)])[""] == ["False\nrefused"]

# %% [markdown]
# ## Read next
#
# - [FM45](fm45_keras2_file_in_keras3.ipynb): other files of Keras 2 in Keras 3.
# - [FM08](fm08_checkpoint_path_wrong.ipynb): a path that TensorFlow accepts, and does not find again.
# - [FM27](fm27_format_not_loadable.ipynb): files that `load_model` refuses.
# - [FM01](fm01_host_read_in_replica.ipynb): reading the weights without a file.
# - What an answer on `get_weights()` says: [document 000](documents/000_weights_in_run.ipynb).
