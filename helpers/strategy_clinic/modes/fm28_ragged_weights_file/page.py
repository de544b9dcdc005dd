# %% [markdown]
# # FM28. `np.save(model.get_weights())`: `The requested array has an inhomogeneous shape`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `ValueError: setting an array element with a sequence. The requested array has an inhomogeneous shape after 1 dimensions. The detected shape was (2,) + inhomogeneous part.` | `np.save(path, model.get_weights())`, NumPy 1.24 and newer | 2, 3 |
# | `ValueError: could not broadcast input array from shape (3,3) into shape (3,)` | the same with older NumPy, and `np.array(weights, dtype=object)`, if the first dimensions agree | 2, 3 |
# | `ValueError: Object arrays cannot be loaded when allow_pickle=False` | `np.load` of a file that an older NumPy, `dtype=object` or a dictionary has written | 2, 3 |
#
# `np.save` writes one array, and the weights of a model are several arrays of different shapes.
#
# *Raises on Keras 2 and 3, under every strategy.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm28",
    slug="ragged_weights_file",
    title="`np.save(model.get_weights())`: `The requested array has an inhomogeneous shape`",
    sees='`np.save("weights.npy", model.get_weights())` raises: inhomogeneous shape',
    fix='`np.savez("weights.npz", *model.get_weights())`, and load it without pickle',
    document="004",
    switches=(),
    symptoms=(
        Symptom(
            "ValueError",
            r"setting an array element with a sequence\. The requested array has an inhomogeneous shape",
        ),
    ),
    prints="the same weights: True",
    exercise_prints="shapes: [(4, 10), (10,)]",
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "npz"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm28", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# A script that carries weights from one model to another through a file. It raises after the training, at the line that saves
# the result.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# If Keras will read the file, `model.save_weights("model.weights.h5")` and `load_weights` need no NumPy. For NumPy,
# `np.savez` writes any number of arrays into one file and keeps them apart.
#
# Keep the order of `arrays.files`. If you sort the names, `arr_10` comes before `arr_2`. The file holds weights only: no layers
# and no optimizer.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# `np.save` converts its argument to one array first. A kernel of shape (4, 10) and a bias of shape (10,) do not fit into one
# array of numbers. NumPy before 1.24 made an array of two Python objects, with a warning, and pickled it. So scripts with this
# line stopped when NumPy was updated. `np.array(weights, dtype=object)` writes such a file today, and reading it raises. Where
# the first dimensions agree, as (3, 3) and (3,) do, every NumPy refuses the conversion too.
#
# `np.save` opens the file before it fails. A file of that name from an earlier run is then empty.
#
# Weights of a single shape, such as kernels without biases, can be stacked and are saved. The line then raises after somebody
# adds a layer of another shape.
#
# `np.load(..., allow_pickle=True)` lets the file run code, since pickle calls what the file names. Do not allow it for a file
# that you did not write.
#
# The picture follows five ways to write a list of weights. See
# [`numpy.savez`](https://numpy.org/doc/stable/reference/generated/numpy.savez.html), and TensorFlow's [Save and load
# models](https://www.tensorflow.org/tutorials/keras/save_and_load) for formats that hold more than weights.

# %% tags=["figure"]
# Each way writes weights into memory, those of the program if nothing else is said, and reads them back without pickle.
import io
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from strategy_clinic import figures


def save_one(file, weights):
    np.save(file, weights)


def save_cast(file, weights):
    np.save(file, np.array(weights, dtype=object))


def save_several(file, weights):
    np.savez(file, *weights)


def read_one(file):
    return list(np.load(file, allow_pickle=False))


def read_several(file):
    """A list of arrays, in the order in which they were written; nothing in the file is run."""
    with np.load(file, allow_pickle=False) as arrays:
        return [arrays[name] for name in arrays.files]


def tried(function, *arguments):
    """What the function returns, or nothing if it cannot."""
    try:
        return function(*arguments)
    except (ValueError, EOFError):
        return None


def survives(save, read, weights):
    """Was anything written, was it read without pickle, and are the weights the same?"""
    file = io.BytesIO()
    tried(save, file, weights)
    written = file.tell() > 0
    file.seek(0)
    back = tried(read, file)
    equal = back is not None and all(map(np.array_equal, back, weights))
    return [written, back is not None, equal]


ragged = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(10)]).get_weights()
square, agreeing = [np.ones((3, 3))] * 2, [np.ones((3, 3)), np.ones(3)]
WAYS = {
    "np.save": survives(save_one, read_one, ragged),
    "np.save, all of one shape": survives(save_one, read_one, square),
    "np.save, cast to objects": survives(save_cast, read_one, ragged),
    "the same, (3, 3) and (3,)": survives(save_cast, read_one, agreeing),
    "np.savez": survives(save_several, read_several, ragged),
}
COLUMNS = ["written", "read back", "same weights"]
figures.grid(WAYS, COLUMNS, "yes", "no", "Which way keeps the weights?")

# %% tags=["figure"]
# What is left of a file from an earlier run.
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "weights.npy"
    save_one(file, square)
    before = file.stat().st_size > 0
    tried(save_one, file, ragged)
    print("the earlier file is now empty:", before and file.stat().st_size == 0)

# %% [markdown]
# ## Try other setups
#
# No strategy makes a difference: `get_weights()` returns the same list of arrays under each of them.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, on two devices, and with the other version of Keras:

# %% tags=["table"]
one = session.setup.but(strategy="default", devices=1)
session.table(
    [one, one.but(strategy="mirrored", devices=2), one.but(keras=session.setup.other_keras)]
)

# %% [markdown]
# ## Exercise
#
# Here the arrays have names, in a dictionary. `np.save` makes an array of one Python object of it and pickles that, so reading
# raises. Change how the file is written, and do not allow pickle. The program should print both shapes.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM29](fm29_optimizer_state_lost.ipynb): what the arrays do not hold, and training needs.
# - [FM25](fm25_load_outside_scope.ipynb): create the model in the scope before you set its weights.
# - [FM06](fm06_architecture_changed.ipynb): weights for a model with other layers.
# - [FM30](fm30_custom_object_unknown.ipynb): another kind of file that can run code when it is loaded.
# - What an answer on `load_model` says: [document 004](documents/004_load_model.ipynb).
