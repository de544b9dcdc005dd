# %% [markdown]
# # FM30. Loading a model whose classes nobody knows fails
#
# A model with a layer of your own saves without a word. The script that loads it says that it cannot locate the class, or that
# the layer is unknown.
#
# ```text
# Keras 3  TypeError: Exception encountered: Could not locate class 'Scale'. Make sure custom classes and functions are decorated with `@keras.saving.register_keras_serializable()`. If they are already decorated, make sure they are all imported so that the decorator is run before trying to load them. Full object config: {'module': None, 'class_name': 'Scale', 'config': {'name': 'scale_23', 'activity_regularizer': None, 'trainable': True, 'dtype': {'module': 'keras', 'class_name': 'DTypePolicy', 'config': {'name': 'float32'}, 'registered_name': None}, 'autocast': True}, 'registered_name': 'Scale', 'build_config': {'input_shape': [None, 3]}}
# Keras 2  TypeError: Cannot deserialize object of type `Scale`. If `Scale` is a custom class, please register it using the `@keras.saving.register_keras_serializable()` decorator.
# ```
#
# *Loud. The save format and the Keras generation choose the message, the strategy has no say. From document 004.*

# %% tags=["declaration"]
from helpers import Claim, FailureMode, Symptom

MODE = FailureMode(
    id="fm30",
    slug="custom_object_unknown",
    title="Loading a model whose classes nobody knows fails",
    sees="`load_model` cannot locate the class of a layer of your own, or calls it unknown",
    fix='name it: `custom_object_scope({"Scale": Scale})` around the load, or register the class',
    document="004",
    switches=("save_format", "keras"),
    symptoms=(
        Symptom(
            "TypeError",
            r"Could not locate (class|function) '\w+'",
            formats=("keras", "npz"),
            keras=(3,),
        ),
        Symptom(
            "TypeError",
            r"Cannot deserialize object of type `\w+`",
            formats=("keras", "npz"),
            keras=(2,),
        ),
        Symptom(
            "ValueError", r"Unknown (layer|loss function|metric function): '?\w+", formats=("h5",)
        ),
    ),
    claims=(
        Claim("004-C7", "weights and configuration, kept apart, are the reliable way", "false"),
    ),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import helpers

clinic = helpers.open("fm30", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The file is called a whole model: architecture, weights, optimizer. So it should be enough to have the file. The script that
# trains defines a small layer, the script that serves imports nothing from it, and why should it?

# %%
import tempfile

import numpy as np
import tensorflow as tf

from helpers import Proof, build_strategy, experiment, figures, formats


def class_of_layer():
    """The class as one script has it. Made in here, it is known to nobody else, as in a process of another script."""

    class Scale(tf.keras.layers.Layer):
        def build(self, input_shape):
            self.factor = self.add_weight(name="factor", shape=(), initializer="uniform")
            self.built = True

        def call(self, inputs):
            return inputs * self.factor

    return Scale


def model_of(*layers, loss="mean_squared_error"):
    model = tf.keras.Sequential([tf.keras.Input((3,)), *layers, tf.keras.layers.Dense(2)])
    model.compile(optimizer="sgd", loss=loss)
    return model


def make_model():
    return model_of(class_of_layer()())


def predict(model):
    # A SavedModel comes back as a graph to call, not as a Keras model.
    call = getattr(model, "serve", model)
    return np.asarray(call(tf.constant([[0.1, 0.2, 0.3]])))


# %%
@experiment
def broken(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder, strategy.scope():
        model = make_model()
        formats.save(model, folder, setup.save_format)
        again = formats.load(folder, setup.save_format, make_model)  # guilty: who is Scale?
    return Proof("the loaded model predicts as before", [predict(again)], [predict(model)])


clinic.reproduces(broken)

# %% [markdown]
# ## Why
#
# A recipe lists layers by *name*, with the arguments to make them. Their code is in your source files, and loading has to find it
# by that name: among Keras's own classes, among those that were registered, or in a dictionary that you give. A loss or a metric
# of your own is looked up in the same way.
#
# A `Lambda` with a Python lambda in it has no name. Keras writes its byte code into the file. Loading that would run what a
# stranger wrote, so it is refused unless you say `safe_mode=False`; only Keras 2 runs it from an `.h5` file without asking.
#
# What holds no recipe asks for no names: weights and checkpoints fill a model that your code has made, and a SavedModel is
# a graph. The picture loads all of these without any help. See
# [the guide to saving](https://www.tensorflow.org/guide/keras/serialization_and_saving#custom_objects).

# %%
REFUSALS = (ValueError, TypeError)


def own_loss():
    def distance(wanted, got):
        return tf.reduce_mean(tf.abs(wanted - got))

    return distance


def with_loss():
    return model_of(loss=own_loss())


def with_lambda():
    return model_of(tf.keras.layers.Lambda(lambda inputs: inputs * 2.0))


def loads(make, save_format):
    with tempfile.TemporaryDirectory() as folder:
        formats.save(make(), folder, save_format)
        try:
            return formats.load(folder, save_format, make) is not None
        except REFUSALS:
            return False


KINDS = {"layer of your own": make_model, "loss of your own": with_loss, "lambda": with_lambda}
LOADED = {
    kind: [loads(make, save_format) for save_format in formats.TABLE]
    for kind, make in KINDS.items()
}
figures.grid(LOADED, list(formats.TABLE), "loads", "refuses", "Without any help")

# %% [markdown]
# ## The fix
#
# Import the class where you load, and say what the name in the file stands for. To be rid of it for good, decorate the class with
# `@tf.keras.utils.register_keras_serializable("my_project")` *before* you save, and import its module before you load. A class
# whose constructor takes arguments also needs a `get_config` that returns them.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder, strategy.scope():
        model = make_model()
        formats.save(model, folder, setup.save_format)
        with tf.keras.utils.custom_object_scope({"Scale": class_of_layer()}):  # repair
            again = formats.load(folder, setup.save_format, make_model)
    return Proof("the loaded model predicts as before", [predict(again)], [predict(model)])


clinic.proves(fixed)

# %%
one = clinic.setup.but(strategy="default", devices=1, save_format="keras")
SETUPS = [one.but(save_format=each) for each in ("keras", "h5", "npz", "checkpoint")]
SETUPS += [one.but(strategy="mirrored", devices=2)]
SETUPS += [one.but(keras=clinic.setup.other_keras, save_format=each) for each in ("keras", "h5")]
clinic.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# `keras`, `h5` and `npz` hold a recipe and fail. `weights_h5`, `checkpoint` and `saved_model` hold none and work, under
# every strategy and in both generations.

# %% tags=["panel"]
clinic.panel()

# %% [markdown]
# ## What you may have read
#
# Document 004 takes weights and configuration apart to be independent of how the model was saved. The configuration is where
# the names are, so that way fails like the others, and the document does not mention it.


# %% tags=["claims"]
def rebuilt_from_config(given):
    """Configuration and weights apart; does it work, with these names given?"""
    model = make_model()
    try:
        with tf.keras.utils.custom_object_scope(given):
            again = tf.keras.Sequential.from_config(model.get_config())
    except REFUSALS:
        return False
    again.set_weights(model.get_weights())
    return np.array_equal(predict(again), predict(model))


print("rebuilt when the name is given:", rebuilt_from_config({"Scale": class_of_layer()}))
clinic.judges({"004-C7": [rebuilt_from_config({}), loads(make_model, "npz")]})

# %% [markdown]
# ## Exercise
#
# This model uses a lambda to scale its inputs. Its file loads with `safe_mode=False`, and then runs byte code that it brings
# along. Leave the loading as it is, and change the model so that there is nothing to refuse.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    model = model_of(tf.keras.layers.Lambda(lambda inputs: inputs * 2.0))
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        again = tf.keras.models.load_model(f"{folder}/model.keras")
    first = again.layers[0]
    got = first(tf.ones((1, 3)))
    return Proof("the loaded model still doubles its inputs", got, [[2.0, 2.0, 2.0]])


clinic.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    model = model_of(tf.keras.layers.Rescaling(2.0))
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        again = tf.keras.models.load_model(f"{folder}/model.keras")
    first = again.layers[0]
    got = first(tf.ones((1, 3)))
    return Proof("the loaded model still doubles its inputs", got, [[2.0, 2.0, 2.0]])


clinic.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm27 format_not_loadable](fm27_format_not_loadable.ipynb): when it is the file that `load_model`
#   does not know.
# - [fm28 ragged_weights_file](fm28_ragged_weights_file.ipynb): another file that runs code when it is
#   loaded with the brakes off.
# - [fm05 untracked_variable](fm05_untracked_variable.ipynb): what a layer of your own has to do for
#   its variables to be saved.
