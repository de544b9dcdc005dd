# %% [markdown]
# # FM45. Loading a Keras 2 file in Keras 3: `Could not locate class 'Functional'`, `batch_shape`, `'fn'`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `TypeError: Could not locate class 'Functional'. ... 'module': 'tf_keras.src.engine.functional'` | `load_model` of a functional model of Keras 2, `.keras` | 3 |
# | `` ValueError: Expected object to be an instance of `KerasSaveable`, but got <tf_keras.src.engine.functional.Functional … `` | the same | 3 before 3.10 |
# | `TypeError: MeanSquaredError.__init__() got an unexpected keyword argument 'fn'` | `load_model` of a model of Keras 2 that was compiled with a loss object | 3 |
# | `ValueError: Unrecognized keyword arguments passed to LSTM: {'time_major': False}` | `load_model` of a model of Keras 2 with an `LSTM` | 3 |
# | `ValueError: Unrecognized keyword arguments passed to DepthwiseConv2D: {'groups': 1}` | the same with a `DepthwiseConv2D` | 3 |
# | `TypeError: Unrecognized keyword arguments: ['batch_shape']` | `load_model` of a model of Keras 3 | 2 |
#
# Another version of Keras has written the file, and its description of the model names classes and arguments that this version
# does not have.
#
# *Raises on Keras 3 for files of Keras 2, and on Keras 2 for files of Keras 3. The strategy does not matter. A checkpoint gives a
# wrong result, with a warning only.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm45",
    slug="keras2_file_in_keras3",
    title="Loading a Keras 2 file in Keras 3: `Could not locate class 'Functional'`, `batch_shape`, `'fn'`",
    sees="`Could not locate class 'Functional'` or `Unrecognized keyword arguments: ['batch_shape']` from `load_model`",
    fix="read it with Keras 2 (`TF_USE_LEGACY_KERAS=1`), or build the model in your code and `load_weights` from the file",
    document="004",
    switches=("keras",),
    symptoms=(
        Symptom(
            "TypeError", r"Could not locate class 'Functional'", keras=(3,), since="keras 3.10"
        ),
        Symptom(
            "ValueError",
            r"Expected object to be an instance of `KerasSaveable`",
            keras=(3,),
            until="keras 3.10",
        ),
    ),
    prints="prediction: [[6.]]",
    exercise_prints="the same predictions: True",
    unavailable={
        "multi_worker": "its processes would write the same file",
        "parameter_server": "its model cannot be called outside the workers",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm45", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# From TensorFlow 2.16 on `tf.keras` is Keras 3; before it was Keras 2, which is now the package `tf_keras`. Both can be imported
# side by side. Here Keras 2 saves a functional model, as a script of 2023 did, and `tf.keras` loads it.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# To change nothing else, install `tf_keras` and set the environment variable `TF_USE_LEGACY_KERAS=1` before TensorFlow is
# imported. `tf.keras` is then Keras 2, and `load_model` reads the file.
#
# To move to Keras 3, build the model in your code and load only the weights. `load_weights` reads `.keras`, `.h5` and
# `.weights.h5` of Keras 2. Compile the model afterwards; the state of the optimizer is not in it (see
# [FM29](fm29_optimizer_state_lost.ipynb)).

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# If the code that built the model is lost, read the file with `tf_keras`, print `summary()`, and carry the weights over with
# `new.set_weights(old.get_weights())`. For Keras's own layers the arrays and their order are the same in both versions. To
# serve a model as it is, export a SavedModel, which both versions read.
#
# From Keras 3 to Keras 2 `load_weights` can raise `expected 2 variables, but received 0`, for example for a subclassed model or
# `MultiHeadAttention`. Use `set_weights` there.
#
# ## Why
#
# A file of a whole model holds a configuration: the class of every layer, loss and optimizer, and its arguments. Keras 3 moved
# classes, renamed arguments and dropped others. It does not find the class `Functional` of Keras 2, the `fn` of a loss, the
# `groups` of a `DepthwiseConv2D` or the `time_major` of an `LSTM`. Keras 2 does not know `batch_shape`. A `Sequential` model
# without such parts loads.
#
# A checkpoint finds its values by attribute names. The kernel of a `Dense` or convolution layer is `kernel` in Keras 2 and
# `_kernel` in Keras 3; the bias is `bias` in both. So biases are restored and kernels are not. TensorFlow only logs a warning,
# often at the end of the program. `status.assert_existing_objects_matched()` raises.
#
# The picture shows which values arrive in the other version. See
# [Migrating Keras 2 code to Keras 3](https://keras.io/guides/migrating_to_keras_3/), and the reports
# [tensorflow#64685](https://github.com/tensorflow/tensorflow/issues/64685) and
# [keras#19151](https://github.com/keras-team/keras/issues/19151).

# %% tags=["figure"]
# One version of Keras saves a model, and the other reads it: all values, some of them, none, or an error.
import importlib
import tempfile
import warnings

import numpy as np
import tensorflow as tf

from strategy_clinic import figures

warnings.filterwarnings("ignore", "You are saving your model as an HDF5")
warnings.filterwarnings("ignore", "Skipping variable loading")
PACKAGES = {2: "tf_keras", 3: "keras"}


def functional(keras, kernel="ones"):
    options = {"kernel_initializer": kernel, "bias_initializer": kernel}
    inputs = keras.Input((3,))
    hidden = keras.layers.Dense(4, **options)(inputs)
    model = keras.Model(inputs, keras.layers.Dense(2, **options)(hidden))
    model.compile("sgd", "mse")
    return model


def sequential(keras, kernel="ones"):
    options = {"kernel_initializer": kernel, "bias_initializer": kernel}
    layers = [keras.layers.Dense(4, **options), keras.layers.Dense(2, **options)]
    model = keras.Sequential([keras.Input((3,)), *layers])
    model.compile("sgd", "mse")
    return model


def by_model(path, **options):
    def save(model):
        model.save(path)

    def load(keras, build):
        return keras.models.load_model(path, **options)

    return save, load


def by_weights(path):
    def save(model):
        model.save_weights(path) if ".weights" in path else model.save(path)

    def load(keras, build):
        model = build(keras, "zeros")
        model.load_weights(path)
        return model

    return save, load


def by_checkpoint(path):
    def tracked(model):
        return tf.train.Checkpoint(**{f"layer{n}": each for n, each in enumerate(model.layers)})

    def save(model):
        tracked(model).write(path)

    def load(keras, build):
        model = build(keras, "zeros")
        tracked(model).read(path).expect_partial()
        return model

    return save, load


def outcome(build, way, old, new):
    save, load = way
    model = build(importlib.import_module(PACKAGES[old]))
    try:
        save(model)
        again = load(importlib.import_module(PACKAGES[new]), build)
    except (TypeError, ValueError):
        return "raises"
    found = [np.asarray(each) for each in again.get_weights()]
    if all(map(np.array_equal, found, model.get_weights())):
        return "all"
    return "some" if any(each.any() for each in found) else "none"


with tempfile.TemporaryDirectory() as folder:
    WAYS = {
        "load_model: Sequential .keras": (sequential, by_model(f"{folder}/a.keras")),
        "load_model: functional .keras": (functional, by_model(f"{folder}/b.keras")),
        "load_model: functional .h5": (functional, by_model(f"{folder}/c.h5")),
        "the same, compile=False": (functional, by_model(f"{folder}/d.h5", compile=False)),
        "load_weights: .keras": (functional, by_weights(f"{folder}/e.keras")),
        "load_weights: .h5": (functional, by_weights(f"{folder}/f.h5")),
        "load_weights: .weights.h5": (functional, by_weights(f"{folder}/g.weights.h5")),
        "checkpoint of the layers": (functional, by_checkpoint(f"{folder}/h")),
    }
    FOUND = {
        name: [outcome(*way, old, new) for old, new in ((2, 3), (3, 2))]
        for name, way in WAYS.items()
    }
COLUMNS = ["Keras 2 to 3", "Keras 3 to 2"]
figures.words(FOUND, COLUMNS, ["raises", "some", "none"], "Which values arrive?")

# %% [markdown]
# ## Try other setups
#
# Set Keras 2: both sides are then the same version, and the failure is gone. No strategy makes a difference.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs with `tf.keras` as Keras 3 and as Keras 2, and on two devices:

# %% tags=["table"]
one = session.setup.but(strategy="default", devices=1)
session.table(
    [one, one.but(keras=session.setup.other_keras), one.but(strategy="mirrored", devices=2)]
)

# %% [markdown]
# ## Exercise
#
# This model has an `LSTM`, for which each version stores other arguments, so `compile=False` does not help. Change the script so
# that the new model predicts what the old one did.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM27](fm27_format_not_loadable.ipynb): a file of the same version, read with the wrong call.
# - [FM30](fm30_custom_object_unknown.ipynb): `Could not locate class` for a class of your own.
# - [FM35](fm35_restore_before_build.ipynb): another restore that leaves weights as they were.
# - [FM29](fm29_optimizer_state_lost.ipynb): what follows from loading weights alone.
