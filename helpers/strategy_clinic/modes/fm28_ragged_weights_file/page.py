# %% [markdown]
# # FM28. Saving a list of weights as one array fails
#
# `np.save("weights.npy", model.get_weights())` raises and speaks of an inhomogeneous shape. The message is NumPy's. Advice from
# before NumPy 1.24 uses this line to carry a model from one strategy to another.
#
# ```text
# ValueError: setting an array element with a sequence. The requested array has an inhomogeneous shape after
# 2 dimensions. The detected shape was (4, 3) + inhomogeneous part.
# ```
#
# *Loud. No strategy, device count, save format or Keras generation makes a difference. From document 004, "Does
# `keras.models.load_model` function correctly with MirroredStrategy?"*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm28",
    slug="ragged_weights_file",
    title="Saving a list of weights as one array fails",
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
    claims=(
        Claim("004-C8", "`np.save` takes the list that `get_weights()` returns", "false"),
        Claim("004-C10", "loading weights with `allow_pickle=True` is harmless", "false"),
    ),
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
# ## What goes wrong
#
# Weights are arrays, and NumPy saves arrays, so you believe that `np.save` takes them. Scripts with this line ran for years. They
# stop when NumPy is updated: after the training, at the line that was to keep its result.

# %%
import io
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures


def make_model(bias=True):
    layers = [
        tf.keras.Input((3,)),
        tf.keras.layers.Dense(3, use_bias=bias),
        tf.keras.layers.Dense(3, use_bias=bias),
    ]
    return tf.keras.Sequential(layers)


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model, other = make_model(), make_model()
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/weights", model.get_weights())  # guilty: a list of several shapes
        other.set_weights(np.load(f"{folder}/weights.npy"))
    return Proof("the other model has the same weights", other.get_weights(), model.get_weights())


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# `np.save` writes *one* array, so it first makes one of the list. A kernel of shape (3, 3) and a bias of shape (3,) have no
# common shape. Old NumPy made an array of Python objects, with a warning, and pickled it. NumPy 1.24 refuses. By then the file is
# open, and what was in it is gone.
#
# Weights of one shape are stacked and saved, until somebody adds a layer. A cast to objects does not help: where first
# dimensions agree, NumPy tries to fill one array into the other.
#
# The picture follows four ways to write a list. See [`numpy.savez`](https://numpy.org/doc/stable/reference/generated/numpy.savez.html),
# and TensorFlow's [Save and load models](https://www.tensorflow.org/tutorials/keras/save_and_load) for formats that hold more.


# %%
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


ragged, square = make_model().get_weights(), make_model(bias=False).get_weights()
WAYS = {
    "np.save": survives(save_one, read_one, ragged),
    "np.save, all of one shape": survives(save_one, read_one, square),
    "np.save, cast to objects": survives(save_cast, read_one, ragged),
    "np.savez": survives(save_several, read_several, ragged),
}
figures.grid(WAYS, ["written", "read back", "same weights"], "yes", "no")

# %%
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "weights.npy"
    save_one(file, square)
    before = file.stat().st_size > 0
    tried(save_one, file, ragged)
    print("the file that was there before is now empty:", before and file.stat().st_size == 0)

# %% [markdown]
# ## The fix
#
# `np.savez` takes any number of arrays and keeps them apart. Before:
#
# ```python
# import numpy as np
# import tensorflow as tf
#
# model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(3)])
# np.save("weights.npy", model.get_weights())  # ValueError: setting an array element with a sequence
# ```
#
# After:
#
# ```python
# import numpy as np
# import tensorflow as tf
#
# model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(3)])
# np.savez("weights.npz", *model.get_weights())
# with np.load("weights.npz") as arrays:
#     restored = [arrays[name] for name in arrays.files]
# print([array.shape for array in restored])  # [(3, 3), (3,)]
# model.set_weights(restored)
# ```
#
# Keep the order of `arrays.files`: if you sort the names, `arr_10` comes before `arr_2`. The file holds weights and nothing else:
# no layers, and no optimizer.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with strategy.scope():
        model, other = make_model(), make_model()
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/weights", *model.get_weights())  # repair: several arrays in one file
        other.set_weights(read_several(f"{folder}/weights.npz"))
    return Proof("the other model has the same weights", other.get_weights(), model.get_weights())


session.proves(fixed)

# %%
one = session.setup.but(strategy="default", devices=1)
SETUPS = [one, one.but(strategy="mirrored", devices=2), one.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Try another strategy: it fails in the same way. `get_weights()` returns the same list of arrays under each of them.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# Document 004, "Does `keras.models.load_model` function correctly with MirroredStrategy?", saves with
# `np.save("model_weights.npy", weights)`, loads with `allow_pickle=True`, and says:
#
# > This approach ensures consistent behavior across different hardware and software setups.
#
# The first line raises on the document's own model. As a footnote on the second: pickle runs code that the file names. Here a
# stranger's file only creates an empty one.


# %% tags=["claims"]
def save_objects(file, weights):
    array = np.empty(len(weights), dtype=object)
    for place, weight in enumerate(weights):
        array[place] = weight
    np.save(file, array)


class Stranger:
    """Something in an array that is not a weight. Unpickling calls what it names, here to create a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def runs_code(**options):
    """Loads an array that a stranger has written; did anything happen beside loading?"""
    with tempfile.TemporaryDirectory() as folder:
        file, trace = Path(folder) / "weights.npy", Path(folder) / "was here"
        save_objects(file, [Stranger(trace), *ragged])
        before = trace.exists()
        tried(lambda: np.load(file, **options))
        return trace.exists() and not before


documents = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(10)]).get_weights()
print("loading runs code from the file:", runs_code(allow_pickle=True))
print("loading runs code from the file, allow_pickle left alone:", runs_code())
session.judges(
    {
        "004-C8": [survives(save_one, read_one, each)[0] for each in (documents, ragged)],
        "004-C10": [not runs_code(allow_pickle=True)],
    },
)

# %% [markdown]
# ## Exercise
#
# Here the arrays have names, in a dictionary. `np.save` makes an array of one Python object of it, and writes that. Reading it
# back fails. Change how it is written, and leave `allow_pickle` alone.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    model = make_model()
    named = {f"weight_{place}": each for place, each in enumerate(model.get_weights())}
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/weights.npy", named)
        restored = np.load(f"{folder}/weights.npy")
        got = [restored[name] for name in named]
    return Proof("every name has its array back", got, model.get_weights())


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    model = make_model()
    named = {f"weight_{place}": each for place, each in enumerate(model.get_weights())}
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/weights.npz", **named)
        restored = np.load(f"{folder}/weights.npz")
        got = [restored[name] for name in named]
    return Proof("every name has its array back", got, model.get_weights())


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm29 optimizer_state_lost](fm29_optimizer_state_lost.ipynb): what the arrays do not hold, and training needs.
# - [fm25 load_outside_scope](fm25_load_outside_scope.ipynb): where to put the weights once you have them back.
# - [fm26 replica_count_changed](fm26_replica_count_changed.ipynb): formats that change the number of replicas without arrays.
