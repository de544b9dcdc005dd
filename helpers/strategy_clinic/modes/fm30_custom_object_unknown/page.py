# %% [markdown]
# # FM30. Loading a model whose classes nobody knows fails
#
# A model with a layer of your own saves. Another script loads it, and the load says that it cannot locate the class.
#
# ```text
# Keras 3  TypeError: … Could not locate class 'Scale'. Make sure custom classes and functions are decorated with
# `@keras.saving.register_keras_serializable()`. If they are already decorated, make sure they are all imported so
# that the decorator is run before trying to load them. …
# Keras 2  TypeError: Cannot deserialize object of type `Scale`. If `Scale` is a custom class, please register it
# using the `@keras.saving.register_keras_serializable()` decorator.
# ```
#
# *Loud. The save format and the Keras generation choose the message, the strategy has no say. From document 004, "Does
# `keras.models.load_model` function correctly with MirroredStrategy?"*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm30",
    slug="custom_object_unknown",
    title="Loading a model whose classes nobody knows fails",
    sees="`load_model` cannot locate the class of a layer of your own, or calls it unknown",
    fix="decorate the class with `@keras.saving.register_keras_serializable()` before you save, and import it to load",
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
    claims=(),
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm30", strategy, devices, save_format, keras)

# %% [markdown]
# ## What goes wrong
#
# The file is called a whole model: architecture, weights, optimizer. You believe that the file is all that a script needs. The
# script that trains defines a small layer. The script that serves does not import it.

# %%
import tempfile

import numpy as np
import tensorflow as tf

from strategy_clinic import Proof, build_strategy, experiment, figures, formats


def unregistered(layer):
    return layer


def class_of_layer(register=unregistered):
    """The class as one script has it. Made in here, it is known to nobody else, as in a process of another script."""

    @register
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
        again = formats.load(folder, setup.save_format, make_model)  # guilty: Scale is unknown here
    return Proof("the loaded model predicts as before", [predict(again)], [predict(model)])


session.reproduces(broken)

# %% [markdown]
# ## Why
#
# The architecture in a file is a list of class *names*, with the arguments to make each layer. The code of a class is in your
# source files. Loading looks the name up among the classes of Keras, among those that were registered, and in the dictionary
# `custom_objects` that you can pass. A loss or a metric of your own is looked up in the same way.
#
# A registered class is saved under the name of its package too, `my_project>Scale`. So a file that was saved before the class was
# registered still needs `custom_objects`.
#
# A `Lambda` layer with a Python lambda has no name. Its byte code is in the file, and loading refuses to run that unless you pass
# `safe_mode=False`.
#
# In the nightly of October 2026, Keras 3.16, an `.h5` file with a loss of your own loads without help.
#
# The picture loads without any help. Weights, checkpoints and SavedModels name no classes. See
# [the guide to saving](https://www.tensorflow.org/guide/keras/serialization_and_saving#custom_objects).

# %%
REFUSALS = (ValueError, TypeError)


def own_loss():
    def distance(wanted, got):
        return tf.reduce_mean(tf.abs(wanted - got))

    return distance


def with_loss():
    return model_of(loss=own_loss())


def registered_model():
    """The same layer, registered in the module that both scripts import."""
    register = tf.keras.utils.register_keras_serializable("my_project")
    return model_of(class_of_layer(register)())


def with_lambda():
    return model_of(tf.keras.layers.Lambda(lambda inputs: inputs * 2.0))


def loads(make, save_format):
    with tempfile.TemporaryDirectory() as folder:
        formats.save(make(), folder, save_format)
        try:
            return formats.load(folder, save_format, make) is not None
        except REFUSALS:
            return False


KINDS = {
    "layer of your own": make_model,
    "loss of your own": with_loss,
    "lambda": with_lambda,
    "registered layer": registered_model,
}
LOADED = {
    kind: [loads(make, save_format) for save_format in formats.TABLE]
    for kind, make in KINDS.items()
}
figures.grid(LOADED, list(formats.TABLE), "loads", "refuses", "Without any help")

# %% [markdown]
# ## The fix
#
# Decorate the class, as the message says, *before* you save, and import its module before you load. Before:
#
# ```python
# import tensorflow as tf
#
# class Scale(tf.keras.layers.Layer):
#     def call(self, inputs):
#         return 2 * inputs
# tf.keras.Sequential([tf.keras.Input((1,)), Scale()]).save("model.keras")
# model = tf.keras.models.load_model("model.keras")  # TypeError: Could not locate class 'Scale'
# ```
#
# After:
#
# ```python
# import tensorflow as tf
#
# @tf.keras.utils.register_keras_serializable("my_project")
# class Scale(tf.keras.layers.Layer):
#     def call(self, inputs):
#         return 2 * inputs
# tf.keras.Sequential([tf.keras.Input((1,)), Scale()]).save("model.keras")
# model = tf.keras.models.load_model("model.keras")
# print(model(tf.ones((1, 1))).numpy())  # [[2.]]
# ```
#
# A file that exists already loads with `load_model("model.keras", custom_objects={"Scale": Scale})`. A class whose constructor
# takes arguments also needs a `get_config` that returns them.


# %%
@experiment
def fixed(setup):
    strategy = build_strategy(setup)
    with tempfile.TemporaryDirectory() as folder, strategy.scope():
        make = registered_model  # repair: both scripts import the decorated class
        model = make()
        formats.save(model, folder, setup.save_format)
        again = formats.load(folder, setup.save_format, make)
    return Proof("the loaded model predicts as before", [predict(again)], [predict(model)])


session.proves(fixed)


# %%
def old_file_loads(**help_given):
    """A file that was saved before the class was registered."""
    with tempfile.TemporaryDirectory() as folder:
        make_model().save(f"{folder}/model.keras")
        try:
            return bool(tf.keras.models.load_model(f"{folder}/model.keras", **help_given))
        except REFUSALS:
            return False


registered_model()
print("old file, once the class is registered:", old_file_loads())
print("old file, with custom_objects:", old_file_loads(custom_objects={"Scale": class_of_layer()}))

# %%
one = session.setup.but(strategy="default", devices=1, save_format="keras")
SETUPS = [one.but(save_format=each) for each in ("keras", "h5", "checkpoint")]
SETUPS += [one.but(strategy="mirrored", devices=2)]
SETUPS += [one.but(keras=session.setup.other_keras)]
session.table(SETUPS)

# %% [markdown]
# ## Switch and run
#
# Try the save formats: `keras`, `h5` and `npz` hold class names and fail. `weights_h5`, `checkpoint` and `saved_model` hold none
# and work.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## What you may have read
#
# Document 004, "Does `keras.models.load_model` function correctly with MirroredStrategy?", recommends to keep weights and
# configuration apart:
#
# > The `model_from_config` function reconstructs the architecture, and `set_weights` restores the trained parameters. This
# > approach ensures consistent behavior across different hardware and software setups.
#
# The configuration is what holds the class names. The column `npz` in the picture is this approach, and it fails like `keras`.
# The sentence itself is judged in [fm29 optimizer_state_lost](fm29_optimizer_state_lost.ipynb).

# %% [markdown]
# ## Exercise
#
# This model uses a loss of your own. The message now says "function" or "loss function" where it said "class" or "layer". Add one
# line above the function, so that the file loads.


# %% tags=["exercise"]
@experiment
def attempt(setup):
    def distance(wanted, got):
        return tf.reduce_mean(tf.abs(wanted - got))

    model = model_of(loss=distance)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        again = tf.keras.models.load_model(f"{folder}/model.keras")
    return Proof("the loaded model predicts as before", [predict(again)], [predict(model)])


session.exercise(attempt)


# %% tags=["solution"]
@experiment
def solved(setup):
    @tf.keras.utils.register_keras_serializable("my_project")
    def distance(wanted, got):
        return tf.reduce_mean(tf.abs(wanted - got))

    model = model_of(loss=distance)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        again = tf.keras.models.load_model(f"{folder}/model.keras")
    return Proof("the loaded model predicts as before", [predict(again)], [predict(model)])


session.solution(solved)

# %% [markdown]
# ## See also
#
# - [fm27 format_not_loadable](fm27_format_not_loadable.ipynb): the file format is what `load_model` does not know.
# - [fm29 optimizer_state_lost](fm29_optimizer_state_lost.ipynb): what configuration and weights leave behind without an error.
# - [fm28 ragged_weights_file](fm28_ragged_weights_file.ipynb): another file that runs code when it is loaded without its guard.
# - [fm05 untracked_variable](fm05_untracked_variable.ipynb): what a layer of your own needs for its variables to be saved.
