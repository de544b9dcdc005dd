# %% [markdown]
# # FM30. `Could not locate class`: loading a model with a layer of your own
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `` TypeError: … Could not locate class 'Scale'. Make sure custom classes and functions are decorated with `@keras.saving.register_keras_serializable()`. … `` | `load_model` of `.keras`, a class; it stands below 20 lines of configuration | 3 |
# | `TypeError: Could not locate function 'distance'. Make sure custom classes …` | `load_model` of `.keras`, a loss or metric | 2, 3 |
# | `` TypeError: Cannot deserialize object of type `Scale`. … `` | `load_model` of `.keras`, a class | 2 |
# | `ValueError: Unknown layer: 'Scale'. …` | `load_model` of `.h5`, a class. A loss: Keras 2 `Unknown loss function`, Keras 3.15 `string indices must be integers, not 'str'` | 2, 3 |
# | `` ValueError: Requested the deserialization of a `Lambda` layer … `` | `load_model`, a Python lambda in the model; on Keras 2 of `.keras` only | 2, 3 |
#
# A file contains the names of the classes and functions, and not their code. Keras finds only those names that are registered.
#
# *Raises on Keras 2 and 3, when it loads a `.keras` or `.h5` file, with any strategy or none. If a model loads and predicts
# otherwise, see [FM72](fm72_model_with_defaults.ipynb).*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm30",
    slug="custom_object_unknown",
    title="`Could not locate class`: loading a model with a layer of your own",
    sees="`load_model` cannot locate the class of a layer of your own, or calls it unknown",
    fix="decorate the class or function with `@keras.saving.register_keras_serializable()` before you save or clone, or load "
    "with `custom_objects=`",
    document="004",
    switches=("save_format", "keras"),
    symptoms=(
        Symptom(
            "TypeError",
            r"Could not locate (class|function) '\w+'",
            formats=("keras",),
            keras=(3,),
        ),
        Symptom(
            "TypeError",
            r"Cannot deserialize object of type `\w+`",
            formats=("keras",),
            keras=(2,),
        ),
        Symptom(
            "ValueError", r"Unknown (layer|loss function|metric function): '?\w+", formats=("h5",)
        ),
    ),
    prints="prediction: 7.0",
    exercise_prints="loss: 2.0",
    unavailable={
        "multi_worker": "its workers would write the same file at the same time",
        "saved_model": "`export` prints a report that is different in each run; it contains no class names",
    },
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
# ## The program
#
# A model with a layer of your own is saved and loaded, in one script.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Decorate the class *before* you save. The argument is the name of your package. The
# message calls the same decorator `keras.saving.register_keras_serializable`.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# Does the file exist already? The decorator does not help: a registered class is saved as `my_project>Scale`, and this file says
# `Scale`. Pass the class: `tf.keras.models.load_model("model.keras", custom_objects={"Scale": Scale})`. The decorator is for the
# next file.
#
# In another script, import the module that defines the class, and then load:
#
# ```python
# import my_layers  # runs the decorator
# loaded = tf.keras.models.load_model("model.keras")
# ```
#
# If saving itself raises `NotImplementedError: Object … was created by passing non-serializable argument values`, the constructor
# gets an array or a layer. Write `get_config`: an array becomes a list by `array.tolist()`, and a layer needs `from_config`, too:
#
# ```python
# def get_config(self):
#     return {**super().get_config(), "inner": tf.keras.layers.serialize(self.inner)}
#
# @classmethod
# def from_config(cls, config):
#     return cls(tf.keras.layers.deserialize(config.pop("inner")), **config)
# ```
#
# ## Why
#
# The architecture in a file is a list of class names with the arguments of each layer. Keras looks the name up among its own
# classes, among those that are registered, and in `custom_objects`. A loss, a metric or an activation of your own is looked up in
# the same way. If the name is one of Keras, such as `mse`, see [FM27](fm27_format_not_loadable.ipynb).
#
# `could not be deserialized properly` is raised, too, if the file was saved with the decorator and the class is not imported:
# import it, or pass `custom_objects={"my_project>Scale": Scale}`. For its other causes see
# [FM72](fm72_model_with_defaults.ipynb).
#
# If only the loss or a metric is unknown, `compile=False` loads the file without it.
#
# A `Lambda` layer with a Python lambda has no name. Its byte code is in the file, and Keras refuses to run it unless you pass
# `safe_mode=False`. Do this only with files that you trust. Keras 2 runs it from an `.h5` file without a question.
#
# Checkpoints contain no class names. In a `.weights.h5` file the layers have names after their classes (on Keras 2 only those of
# `Sequential` and functional models): rename a class, and loading raises, see [FM06](fm06_architecture_changed.ipynb). See
# [the guide to saving](https://www.tensorflow.org/guide/keras/serialization_and_saving#custom_objects).
#
# `model_from_json` needs the decorator as well.
#
# The tables show which files load again, and what comes back.

# %% tags=["figure"]
# Saves and loads four models, as `.keras` and as `.h5`, without a decorator and without custom_objects.
from strategy_clinic import figures

HEAD, _, _ = session.texts["fixed"].partition("\n\n\nmodel = make_model()")
FUNCTION = """


def distance(labels, predictions):
    return tf.reduce_mean(tf.abs(labels - predictions))


"""
MODELS = {
    "a layer": "model = tf.keras.Sequential([tf.keras.Input((3,)), Scale()])",
    "a registered layer": "model = make_model()",
    "a loss": 'model = tf.keras.Sequential([tf.keras.Input((3,))])\nmodel.compile("sgd", distance)',
    "a lambda": "times = tf.keras.layers.Lambda(lambda inputs: 2.0 * inputs)\n"
    "model = tf.keras.Sequential([tf.keras.Input((3,)), times])",
}
SAVED = '\nmodel.save("{0}")\ntf.keras.models.load_model("{0}")\nprint("loads")\n'
DECORATOR = '@tf.keras.utils.register_keras_serializable("my_project")  # fixed\n'
FILES = {".keras": "own.keras", ".h5": "own.h5"}
texts = {
    (kind, file): (HEAD.replace(DECORATOR, "") if kind == "a layer" else HEAD)
    + FUNCTION
    + code
    + SAVED.format(name)
    for kind, code in MODELS.items()
    for file, name in FILES.items()
}
here = session.setup.but(strategy="default", devices=1, save_format="keras")
printed = session.prints(texts, [here])
LOADED = {kind: [printed[kind, file][0] for file in FILES] for kind in MODELS}
bad = {word for row in LOADED.values() for word in row} - {"loads"}
figures.words(LOADED, list(FILES), bad, "Which model loads again?")

# %% tags=["figure"]
# Saves an own `Model` with factor 5.0, and a layer whose class is renamed before its weights are loaded.
OWN = """import tensorflow as tf


@tf.keras.utils.register_keras_serializable("my_project")
class Network(tf.keras.Model):
    def __init__(self, factor=1.0, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor
        self.dense = tf.keras.layers.Dense(1)

    def call(self, inputs):
        return self.factor * self.dense(inputs)


model = Network(factor=5.0)
model(tf.ones((1, 3)))
model.save("own.keras")
print("factor", tf.keras.models.load_model("own.keras").factor)
"""
CONFIG = """
    def get_config(self):
        return {**super().get_config(), "factor": self.factor}
"""
WEIGHTS = """import tensorflow as tf


def make_model(name):
    methods = {"build": lambda self, shape: setattr(self, "scale", self.add_weight(name="scale"))}
    made = type(name, (tf.keras.layers.Layer,), methods | {"call": lambda self, x: self.scale * x})
    return tf.keras.Sequential([tf.keras.Input((3,)), made()])


model, renamed = make_model("Scale"), make_model("Renamed")
"""
CALL = "    def call("
own = {
    "own Model": OWN,
    "own Model, get_config": OWN.replace(CALL, CONFIG[1:] + "\n" + CALL),
    "renamed, .weights.h5": WEIGHTS
    + 'model.save_weights("a.weights.h5")\nrenamed.load_weights("a.weights.h5")\nprint("loads")\n',
    "renamed, checkpoint": WEIGHTS
    + 'path = tf.train.Checkpoint(model=model).save("saved/a")\n'
    + "tf.train.Checkpoint(model=renamed).restore(path).assert_existing_objects_matched()\n"
    + 'print("loads")\n',
}
OUTCOMES = session.prints(own, [here.but(keras=3), here.but(keras=2)])
figures.words(OUTCOMES, ["Keras 3", "Keras 2"], ("factor 1.0", "ValueError"), "What comes back?")

# %% [markdown]
# ## Try other setups
#
# Change the save format: `keras` and `h5` fail. `weights_h5`, `checkpoint` and `npz` work, because `make_model()` creates the
# layers.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs in four formats, and with the other version of Keras:

# %% tags=["table"]
session.table(
    [
        *(here.but(save_format=name) for name in ("keras", "h5", "checkpoint", "npz")),
        here.but(keras=session.setup.other_keras),
    ]
)

# %% [markdown]
# ## Exercise
#
# This model has a loss of your own, and the message says "function" where it said "class". Add one line, so that the file loads.
# It should print `loss: 2.0`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM27](fm27_format_not_loadable.ipynb): `load_model` does not know the format of the file.
# - [FM45](fm45_keras2_file_in_keras3.ipynb): a file of Keras 2, and a class that has changed.
# - [FM72](fm72_model_with_defaults.ipynb): it loads, and the arguments of the constructor are the defaults.
# - [FM05](fm05_untracked_variable.ipynb): what a layer of your own needs for its variables to be saved.
