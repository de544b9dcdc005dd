# %% [markdown]
# # FM45. A file of the other Keras generation is refused, or fills a model in part
#
# A model was saved by Keras 2, and TensorFlow now brings Keras 3, or the other way round. The file is the right one.
# `load_model` raises. A checkpoint restores the biases and leaves the kernels as they are, without a word.
#
# ```text
# Keras 3  TypeError: … MeanSquaredError.__init__() got an unexpected keyword argument 'fn'
# Keras 2  TypeError: … Unrecognized keyword arguments: ['batch_shape']
# ```
#
# *Loud for whole-model files, silent for checkpoints, in both directions. Save format and Keras generation matter, the strategy
# does not. Reported as [tensorflow#64685](https://github.com/tensorflow/tensorflow/issues/64685) and
# [keras#19151](https://github.com/keras-team/keras/issues/19151). From document 004 on saving and loading, which knows one
# Keras.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm45",
    slug="keras2_file_in_keras3",
    title="A file of the other Keras generation is refused, or fills a model in part",
    sees="`Unrecognized keyword arguments: ['batch_shape']`, or a restored model that predicts nonsense",
    fix="build the model in your code, and call `load_weights` on the same file, `.keras` and `.h5` too",
    document="004",
    switches=("save_format", "keras"),
    symptoms=(
        Symptom(
            "TypeError",
            r"MeanSquaredError\.__init__\(\) got an unexpected keyword argument 'fn'",
            formats=("keras", "h5"),
            keras=(3,),
        ),
        Symptom(
            "TypeError",
            # Keras 3.13 goes on with 'optional'.
            r"Unrecognized keyword arguments: \['batch_shape'",
            formats=("keras", "h5"),
            keras=(2,),
        ),
        Symptom(
            "SilentFailure",
            r"not so: the model of this Keras predicts what that of the other did",
            formats=("checkpoint",),
        ),
    ),
    claims=(),
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
# ## What goes wrong
#
# A file lies there from last year, with the code that made it. You have updated TensorFlow: from version 2.16 on, `tf.keras` is
# Keras 3, and before it was Keras 2. You believe that a format has one meaning, since its name is the same.
#
# Both generations can be imported side by side: `tf_keras` is Keras 2, `keras` is Keras 3. On this page the other generation
# writes, and the one of the parameters reads.

# %%
import importlib
import tempfile
import warnings

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures, formats

warnings.filterwarnings(
    "ignore", "You are saving your model as an HDF5"
)  # that is what the page is about
warnings.filterwarnings("ignore", "Skipping variable loading")

FILES = {"keras": "model.keras", "h5": "model.h5", "weights_h5": "model.weights.h5"}


def package(generation):
    return importlib.import_module("tf_keras" if generation == 2 else "keras")


def make_model(keras, kernel="ones"):
    """Two layers, whose biases are as large as their kernels."""
    options = {"kernel_initializer": kernel, "bias_initializer": kernel}
    layers = [keras.layers.Dense(4, **options), keras.layers.Dense(2, **options)]
    model = keras.Sequential([keras.Input((3,)), *layers])
    model.compile("sgd", keras.losses.MeanSquaredError())
    return model


def predict(model):
    # A SavedModel comes back as a graph to call, not as a Keras model.
    call = getattr(model, "serve", model)
    return np.asarray(call(tf.constant([[0.1, 0.2, 0.3]])))


def parts(model):
    """What a checkpoint of this page tracks: the layers, each by a name."""
    hidden, last = model.layers
    return {"hidden": hidden, "last": last}


def save(model, folder, save_format):
    if save_format == "checkpoint":
        tf.train.Checkpoint(**parts(model)).write(f"{folder}/checkpoint")
    else:
        formats.save(model, folder, save_format)


def restore(keras, folder):
    model = make_model(keras, "zeros")
    tf.train.Checkpoint(**parts(model)).read(f"{folder}/checkpoint").expect_partial()
    return model


def set_arrays(keras, folder):
    model = make_model(keras, "zeros")
    with np.load(f"{folder}/weights.npz", allow_pickle=False) as arrays:
        model.set_weights([arrays[name] for name in arrays.files])
    return model


def load_weights(keras, folder, save_format):
    model = make_model(keras, "zeros")
    model.load_weights(f"{folder}/{FILES[save_format]}")
    return model


def load_graph(keras, folder):
    return tf.saved_model.load(f"{folder}/saved_model")


def load_model(keras, folder, save_format, **options):
    return keras.models.load_model(f"{folder}/{FILES[save_format]}", **options)


def as_written(keras, folder, save_format):
    """Reads a file as the generation that wrote it would."""
    calls = {"checkpoint": restore, "saved_model": load_graph, "npz": set_arrays}
    if save_format == "weights_h5":
        return load_weights(keras, folder, save_format)
    if save_format in calls:
        return calls[save_format](keras, folder)
    return load_model(keras, folder, save_format)


def proof(again, model):
    what = "the model of this Keras predicts what that of the other did"
    return Proof(what, [predict(again)], [predict(model)])


# %%
@experiment
def broken(setup):
    strategy, this, other = build_strategy(setup), package(setup.keras), package(setup.other_keras)
    with tempfile.TemporaryDirectory() as folder, strategy.scope():
        model = make_model(other)
        save(model, folder, setup.save_format)
        again = as_written(this, folder, setup.save_format)  # guilty: the other Keras wrote it
    return proof(again, model)


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# A whole-model file holds a configuration: for every layer, loss and optimizer the arguments of its class. Keras 3 renamed some
# of them and dropped others. Keras 2 does not know `batch_shape`, and Keras 3 does not know the `fn` of a loss, the `groups` of
# a `DepthwiseConv2D`, the `time_major` of an `LSTM`. A functional model is stored under a class that the other package does not
# have.
#
# The arrays are the same in both, and their order is. `load_weights` needs no configuration, so it opens `.h5`, `.weights.h5`
# and even `.keras`.
#
# A checkpoint knows its values by the attributes that lead to them. The kernel of a layer is `kernel` in Keras 2 and `_kernel`
# in Keras 3, the bias is `bias` in both. So the biases find their values, and the kernels none. A `Sequential` or functional
# model that is tracked as a whole, by `Checkpoint(model=model)`, gets nothing. With the slots of an optimizer the restore may
# raise a shape error.
#
# The picture reads every format in every direction. See [Keras on moving from 2 to
# 3](https://keras.io/guides/migrating_to_keras_3/).


# %%
def outcome(call, old, new):
    """Saves with one generation and reads with another; `call` says which format, and how it is read."""
    save_format, read = call
    with tempfile.TemporaryDirectory() as folder:
        model = make_model(package(old))
        save(model, folder, save_format)
        try:
            again = read(package(new), folder)
        except (TypeError, ValueError):
            return "raises"
    values = np.concatenate([np.ravel(each) for each in again.variables])
    return (
        "all"
        if np.array_equal(predict(again), predict(model))
        else "in part"
        if values.any()
        else "none"
    )


def whole(save_format, **options):
    return save_format, lambda keras, folder: load_model(keras, folder, save_format, **options)


def weights(save_format):
    return save_format, lambda keras, folder: load_weights(keras, folder, save_format)


CALLS = {
    ".keras": whole("keras"),
    ".h5": whole("h5"),
    ".keras, compile=False": whole("keras", compile=False),
    ".keras, load_weights": weights("keras"),
    ".h5, load_weights": weights("h5"),
    ".weights.h5": weights("weights_h5"),
    "checkpoint": ("checkpoint", restore),
    "SavedModel": ("saved_model", load_graph),
}
DIRECTIONS = ((2, 2), (3, 3), (2, 3), (3, 2))
FOUND = {name: [outcome(call, *each) for each in DIRECTIONS] for name, call in CALLS.items()}
COLUMNS = [f"{old} to {new}" for old, new in DIRECTIONS]
figures.words(FOUND, COLUMNS, ["raises", "in part", "none"], "Which values arrive?")

# %% [markdown]
# ## The fix
#
# Build the model in your code and load only the weights, from the file that you have. Before:
#
# ```python
# import tensorflow as tf
# import tf_keras  # Keras 2
#
# old = tf_keras.Sequential([tf_keras.Input((3,)), tf_keras.layers.Dense(1)])
# old.compile("sgd", tf_keras.losses.MeanSquaredError())
# old.save("model.keras")
# new = tf.keras.models.load_model("model.keras")  # TypeError: unexpected keyword argument 'fn'
# ```
#
# After:
#
# ```python
# import tensorflow as tf
# import tf_keras  # Keras 2
#
# old = tf_keras.Sequential([tf_keras.Input((3,)), tf_keras.layers.Dense(1)])
# old.compile("sgd", tf_keras.losses.MeanSquaredError())
# old.save("model.keras")
# new = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
# new.load_weights("model.keras")
# print(float(tf.reduce_max(tf.abs(new(tf.ones((1, 3))) - old(tf.ones((1, 3)))))))  # 0.0
# ```
#
# Then compile. The optimizer starts anew (fm29). From a checkpoint, take the arrays by their names with
# `tf.train.load_checkpoint`, as `fill` does here. `checks.assert_restored(status)` raises where a restore left something as it
# was. To serve a model as it is, export a SavedModel, which both generations read. To change nothing at all, install `tf_keras`
# and set `TF_USE_LEGACY_KERAS=1` before TensorFlow is imported.


# %%
def from_checkpoint(keras, folder):
    """Sets the arrays of each layer, whatever this or the other Keras calls its kernel."""
    model = make_model(keras, "zeros")
    file = tf.train.load_checkpoint(f"{folder}/checkpoint")
    stored = {
        name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE")
        for name in file.get_variable_to_shape_map()
    }
    for name, layer in parts(model).items():
        kernel = f"{name}/kernel" if f"{name}/kernel" in stored else f"{name}/_kernel"
        names = [f"{each}/.ATTRIBUTES/VARIABLE_VALUE" for each in (kernel, f"{name}/bias")]
        layer.set_weights([file.get_tensor(each) for each in names])
    return model


def fill(keras, folder, save_format):
    """A model that is built in the code, with the arrays of the file."""
    calls = {"checkpoint": from_checkpoint, "saved_model": load_graph, "npz": set_arrays}
    if save_format in calls:
        return calls[save_format](keras, folder)
    return load_weights(keras, folder, save_format)


@experiment
def fixed(setup):
    strategy, this, other = build_strategy(setup), package(setup.keras), package(setup.other_keras)
    with tempfile.TemporaryDirectory() as folder, strategy.scope():
        model = make_model(other)
        save(model, folder, setup.save_format)
        again = fill(this, folder, setup.save_format)  # repair
    return proof(again, model)


session.proves(fixed)

# %%
one = session.setup.but(strategy="default", devices=1)
NAMES = ("keras", "h5", "weights_h5", "checkpoint", "saved_model")
SETUPS = [one.but(save_format=each) for each in NAMES]
SETUPS += [one.but(strategy="mirrored", devices=2, save_format="checkpoint")]
other = one.but(keras=session.setup.other_keras)
SETUPS += [other.but(save_format=each) for each in ("keras", "checkpoint")]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Choose `checkpoint`: nothing is raised, and the prediction is that of the biases. Choose `weights_h5` or `saved_model`, and the
# failure is gone. Then switch Keras, which turns the direction round.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# Document 004 asks whether `load_model` works with `MirroredStrategy`, and blames the strategy for "runtime errors or silent
# performance degradation". Here there is no strategy. In the reports
# [tensorflow#64685](https://github.com/tensorflow/tensorflow/issues/64685), a file of Keras 3 in Keras 2, and
# [keras#19151](https://github.com/keras-team/keras/issues/19151), one of Keras 2 in Keras 3, the last lines are
#
# > Unrecognized keyword arguments: ['batch_shape'] … Unrecognized keyword arguments passed to DepthwiseConv2D: {'groups': 1}
#
# Both are so today: the picture has the first, and this cell runs the second.


# %%
def depthwise_opens(new):
    """A `DepthwiseConv2D` from Keras 2, without any compiling."""
    old = package(2)
    layers = [old.Input((4, 4, 2)), old.layers.DepthwiseConv2D(2)]
    with tempfile.TemporaryDirectory() as folder:
        old.Sequential(layers).save(f"{folder}/model.h5")
        try:
            load_model(package(new), folder, "h5", compile=False)
        except TypeError as error:
            return "{'groups': 1}" not in str(error)
    return True


print("a DepthwiseConv2D of Keras 2 opens in Keras 2:", depthwise_opens(2))
print("a DepthwiseConv2D of Keras 2 opens in Keras 3:", depthwise_opens(3))

# %% [markdown]
# ## Exercise
#
# This model has an `LSTM`, of which each generation stores other arguments, so `compile=False` does not help. Change the script
# so that the new model predicts what the old one did.


# %% tags=["exercise"]
def recurrent(keras):
    layers = [keras.layers.LSTM(2), keras.layers.Dense(1)]
    return keras.Sequential([keras.Input((4, 3)), *layers])


@experiment
def attempt(setup):
    this, other = package(setup.keras), package(setup.other_keras)
    model = recurrent(other)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.h5")
        again = this.models.load_model(f"{folder}/model.h5", compile=False)
    got, want = again(tf.ones((1, 4, 3))), model(tf.ones((1, 4, 3)))
    return Proof("the new model predicts what the old one did", [got], [want])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    this, other = package(setup.keras), package(setup.other_keras)
    model = recurrent(other)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.h5")
        again = recurrent(this)
        again.load_weights(f"{folder}/model.h5")
    got, want = again(tf.ones((1, 4, 3))), model(tf.ones((1, 4, 3)))
    return Proof("the new model predicts what the old one did", [got], [want])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm27 format_not_loadable](fm27_format_not_loadable.ipynb): a file of this generation, opened with the wrong call.
# - [fm30 custom_object_unknown](fm30_custom_object_unknown.ipynb): a class of your own that the reading script lacks.
# - [fm35 restore_before_build](fm35_restore_before_build.ipynb): another restore that leaves weights as they were.
# - [fm29 optimizer_state_lost](fm29_optimizer_state_lost.ipynb): what follows from loading weights alone.
