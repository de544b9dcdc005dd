# %% [markdown]
# # FM27. Giving `load_model` a file that it cannot read fails
#
# The checkpoint is there, `load_model` gets its path, and says that the format is not supported, or that there is no such file.
#
# ```text
# Keras 3  ValueError: File format not supported: filepath=checkpoint-1. Keras 3 only supports V3 `.keras` files,
# legacy H5 format files (`.h5` extension). … In order to reload a TensorFlow SavedModel as an inference-only layer
# in Keras 3, use `keras.layers.TFSMLayer(checkpoint-1, call_endpoint='serving_default')` …
# Keras 2  OSError: No file or directory found at checkpoint-1
# ```
#
# *Loud, with another message for each format. Save format and Keras generation matter, the strategy does not. From document 004,
# "Does `keras.models.load_model` function correctly with MirroredStrategy?"*

# %% tags=["declaration"]
from strategy_clinic import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm27",
    slug="format_not_loadable",
    title="Giving `load_model` a file that it cannot read fails",
    sees="`load_model` refuses a checkpoint, a SavedModel, a weights file, or an `.h5` file",
    fix="open each file with the call that wrote its kind; an `.h5` file with `compile=False`",
    document="004",
    switches=("save_format", "keras"),
    symptoms=(
        Symptom(
            "ValueError",
            r"File format not supported: filepath=\S+ Keras 3 only supports V3 `.keras` files",
            formats=("checkpoint", "saved_model", "npz"),
            keras=(3,),
        ),
        Symptom(
            "ValueError",
            r"Could not deserialize 'keras.metrics.mse' because it is not a KerasSaveable",
            formats=("h5",),
            keras=(3,),
            until="keras 3.16",
        ),
        Symptom("ValueError", r"No model config found in the file at", formats=("weights_h5",)),
        Symptom(
            "OSError",
            r"No file or directory found at \S+",
            formats=("checkpoint",),
            keras=(2,),
        ),
        Symptom("OSError", r"file signature not found", formats=("npz",), keras=(2,)),
        Symptom(
            "FileNotFoundError",
            r"You may be trying to load on a different device from the computational device",
            strategies=("parameter_server",),
            formats=("saved_model",),
            keras=(2,),
        ),
    ),
    claims=(
        Claim(
            "004-C6",
            "the first example's `.h5` file loads",
            {2: "true", 3: "half"},
            until="keras 3.16",
        ),
        Claim("004-C6", "the first example's `.h5` file loads", "true", since="keras 3.16"),
        Claim("004-C9", "`model_from_config(model.get_config())` rebuilds the model", "false"),
        Claim("004-C11", "`load_model(latest_checkpoint(folder))` loads a checkpoint", "false"),
    ),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "checkpoint"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm27", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# You have saved a model, so you call `load_model`. You believe that it opens whatever Keras or TensorFlow has written. The
# message then names a format or a missing file, and you suspect the strategy around the line.

# %%
import contextlib
import tempfile

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures, formats

FILES = {
    "keras": "model.keras",
    "h5": "model.h5",
    "weights_h5": "model.weights.h5",
    "checkpoint": "checkpoint-1",
    "saved_model": "saved_model",
    "npz": "weights.npz",
}


def make_model():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    model.compile(optimizer="sgd", loss="mse")
    return model


def predict(model):
    # A SavedModel comes back as a graph to call, not as a Keras model.
    call = getattr(model, "serve", model)
    return np.asarray(call(tf.constant([[0.1, 0.2, 0.3]])))


# %%
@experiment
def broken(setup):
    strategy, path = build_strategy(setup), FILES[setup.save_format]
    with tempfile.TemporaryDirectory() as folder, strategy.scope(), contextlib.chdir(folder):
        model = make_model()
        formats.save(model, folder, setup.save_format)
        again = tf.keras.models.load_model(path)  # guilty: one call for all kinds of files
    return Proof("the loaded model predicts as before", [predict(again)], [predict(model)])


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# `load_model` needs the architecture, and only whole-model files hold it. A checkpoint and a `.weights.h5` file hold arrays with
# the names of their places. A checkpoint path is the beginning of several file names: `checkpoint-1.index` is one of them.
#
# A SavedModel holds graphs: functions to call, and no layers. Keras 2 loads those functions. Keras 3 refuses, and its message
# names `TFSMLayer`, an inference-only layer that calls the graph.
#
# `.h5` is a whole-model file, but an old one. It stores the loss as the string `mse`. Keras 3 cannot turn that string back into a
# loss when it loads `.h5`. The weights are fine: load with `compile=False`, then compile.
#
# The picture opens every kind of file with every call. See
# [the guide to saving](https://www.tensorflow.org/guide/keras/serialization_and_saving).


# %%
def load_model(path):
    return tf.keras.models.load_model(path)


def load_model_uncompiled(path):
    return tf.keras.models.load_model(path, compile=False)


def load_weights(path):
    model = make_model()
    model.load_weights(path)
    return model


def restore(path):
    model = make_model()
    tf.train.Checkpoint(model=model).restore(path).assert_existing_objects_matched()
    return model


def load_graph(path):
    return tf.saved_model.load(path)


def graph_layer(path):
    return tf.keras.layers.TFSMLayer(path, call_endpoint="serve")


def set_weights(path):
    model = make_model()
    with np.load(path, allow_pickle=False) as arrays:
        model.set_weights([arrays[name] for name in arrays.files])
    return model


REFUSALS = (ValueError, TypeError, OSError, AttributeError, AssertionError, tf.errors.OpError)


def opens(call, name):
    """Does this call bring back what was saved in this format?"""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        model = make_model()
        formats.save(model, ".", name)
        try:
            return np.array_equal(predict(call(FILES[name])), predict(model))
        except REFUSALS:
            return False


CALLS = {
    "load_model": load_model,
    "compile=False": load_model_uncompiled,
    "load_weights": load_weights,
    "restore": restore,
    "saved_model.load": load_graph,
    "TFSMLayer": graph_layer,  # there is none in Keras 2
    "np.load": set_weights,
}
OPENED = {name: [opens(call, name) for call in CALLS.values()] for name in FILES}
figures.grid(OPENED, list(CALLS), "opens", "refuses", "Which call opens which file?")

# %% [markdown]
# ## The fix
#
# Read each file with the counterpart of the call that wrote it. Where the file holds no architecture, build the model in your
# code, in the scope of your strategy, and fill it. Before:
#
# ```python
# import tensorflow as tf
#
# def new_model(kernel):
#     return tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer=kernel)])
# path = tf.train.Checkpoint(model=new_model("ones")).save("checkpoint")
# model = tf.keras.models.load_model(path)  # ValueError: File format not supported
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# def new_model(kernel):
#     return tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer=kernel)])
# path = tf.train.Checkpoint(model=new_model("ones")).save("checkpoint")
# model = new_model("zeros")
# tf.train.Checkpoint(model=model).restore(path).assert_existing_objects_matched()
# print(model.get_weights()[0])  # [[1.]]
# ```
#
# A `.weights.h5` file goes into `model.load_weights`. A SavedModel goes into `tf.saved_model.load`, or on Keras 3 into the
# `TFSMLayer` that the message advises. An `.h5` file opens with `compile=False`; one that was compiled with a loss object,
# `tf.keras.losses.MeanSquaredError()`, opens as it is.


# %%
def open_again(path, save_format):
    """The call for each kind of file."""
    calls = {
        "keras": load_model,
        "h5": load_model_uncompiled,
        "weights_h5": load_weights,
        "checkpoint": restore,
        "saved_model": load_graph,
        "npz": set_weights,
    }
    call = calls[save_format]
    return call(path)


@experiment
def fixed(setup):
    strategy, path = build_strategy(setup), FILES[setup.save_format]
    with tempfile.TemporaryDirectory() as folder, strategy.scope():
        model = make_model()
        formats.save(model, folder, setup.save_format)
        again = open_again(f"{folder}/{path}", setup.save_format)  # repair: the call that fits
    return Proof("the loaded model predicts as before", [predict(again)], [predict(model)])


session.proves(fixed)

# %%
one = session.setup.but(strategy="default", devices=1, save_format="checkpoint")
SETUPS = [one, one.but(strategy="mirrored", devices=2)]
SETUPS += [one.but(save_format=each) for each in ("keras", "h5")]
SETUPS += [one.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Try the save formats, then the other Keras: `.keras` opens in both, `.h5` and the SavedModel in one. Then try
# `parameter_server`: its processes have another current folder, so give them whole paths.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# Document 004, "Does `keras.models.load_model` function correctly with MirroredStrategy?", says of its first example, which loads
# an `.h5` file:
#
# > If the loading phase omits the strategy, the model may behave unpredictably, leading to runtime errors or silent performance
# > degradation depending on the hardware in use.
#
# On Keras 3 that line raises if the loss was a string, with a strategy and without. The other two examples call
#
# > keras.models.model_from_config(model_config) … keras.models.load_model(tf.train.latest_checkpoint(checkpoint_dir))
#
# Both raise on one device already. For the first, `Sequential.from_config` works.


# %% tags=["claims"]
def runs(function, *arguments):
    try:
        return bool(function(*arguments))
    except REFUSALS:
        return False


def h5_loads(loss):
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(10)])
    model.compile(optimizer="adam", loss=loss)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        formats.save(model, ".", "h5")
        return runs(load_model, "model.h5")


def checkpoint_loads():
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        formats.save(make_model(), ".", "checkpoint")
        return runs(load_model, tf.train.latest_checkpoint("."))


session.judges(
    {
        # The document leaves the arguments of `compile` out.
        "004-C6": [h5_loads("mse"), h5_loads(tf.keras.losses.MeanSquaredError())],
        "004-C9": [runs(lambda: tf.keras.models.model_from_config(make_model().get_config()))],
        "004-C11": [checkpoint_loads()],
    },
)

# %% [markdown]
# ## Exercise
#
# `ModelCheckpoint` keeps the weights after each epoch. This script wants the model back from the file, and the load raises. Build
# the model first, and use the call that reads such a file.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    model = make_model()
    path = "last.weights.h5"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        kept = tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True)
        model.fit(tf.ones((4, 3)), tf.ones((4, 2)), callbacks=[kept], verbose=0)
        again = tf.keras.models.load_model(path)
    return Proof("the loaded model predicts as before", [predict(again)], [predict(model)])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    model = make_model()
    path = "last.weights.h5"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        kept = tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True)
        model.fit(tf.ones((4, 3)), tf.ones((4, 2)), callbacks=[kept], verbose=0)
        again = make_model()
        again.load_weights(path)
    return Proof("the loaded model predicts as before", [predict(again)], [predict(model)])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm30 custom_object_unknown](fm30_custom_object_unknown.ipynb): the format is right, and a class in the file is unknown.
# - [fm04 weights_path_refused](fm04_weights_path_refused.ipynb): the counterpart, a file name that saving refuses.
# - [fm26 replica_count_changed](fm26_replica_count_changed.ipynb): each of these formats between two numbers of replicas.
# - [fm25 load_outside_scope](fm25_load_outside_scope.ipynb): the file opens, and the model is on one device.
# - [fm28 ragged_weights_file](fm28_ragged_weights_file.ipynb): weights that are not written at all.
