# %% [markdown]
# # FM72. `load_model` makes a custom model or layer with its default arguments
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `after loading: 2.0`, in place of 6.0 | `load_model` of a custom `Model` without `get_config` | 3 |
# | no message: another prediction or another training | `load_model` of a custom layer or loss whose `get_config` lacks an argument | 2, 3 |
# | no message: another prediction | an attribute that is set after the constructor has run, or that `build` draws at random | 2, 3 |
# | `TypeError: … could not be deserialized properly. …` | `load_model` of a custom `Model` whose constructor takes no `**kwargs` | 3 |
# | `ValueError: … expected 2 variables, but received 0 variables during loading. …` | the same, if the argument decides a shape: see FM06 | 3 |
#
# A file has the name of the class and what `get_config` returns. What `get_config` of a custom class leaves out is the default of its
# constructor after loading.
#
# *Wrong result without an error, for `.keras` files, with every strategy or none. A custom `Model` without `get_config` on Keras 3
# only.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm72",
    slug="model_with_defaults",
    title="`load_model` makes a custom model or layer with its default arguments",
    sees="a loaded model of a custom class predicts or trains otherwise: its constructor got the defaults",
    fix='write `get_config` in the class: `return {**super().get_config(), "factor": self.factor}`',
    document="004",
    switches=("keras",),
    symptoms=(Symptom("SilentFailure", r"it prints 'after loading: 2\.0'", keras=(3,)),),
    prints="before saving: 6.0\nafter loading: 6.0",
    exercise_prints="rate of dropout: 0.25\nrate of dropout: 0.5",
    unavailable={
        "multi_worker": "its workers would write the same file at the same time",
        "h5": "such a model is not saved in this format by Keras 2",
        "saved_model": "it is loaded as a function, and no model is made",
        "checkpoint": "the program itself makes the model",
        "weights_h5": "the program itself makes the model",
        "npz": "the program itself makes the model",
    },
)

# %% tags=["parameters"]
strategy = "default"
devices = 1
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm72", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# A model multiplies the output of a layer by a factor, 3. It is registered, saved and loaded in one script.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Return each argument of the constructor by its name, and save the file again.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# A constructor without `**kwargs` takes no `name` or `dtype`. Then return the arguments alone: `{"factor": self.factor}`. An array
# needs `.tolist()`. An argument that is a layer needs `tf.keras.utils.serialize_keras_object(self.inner)` in `get_config`, and a
# `from_config` that calls `tf.keras.utils.deserialize_keras_object`. Without it the loaded model holds a dictionary, and raises.
#
# An attribute that is no argument of the constructor, such as a mean of the data or an array that `build` draws, is in no file. Make it a
# weight: `self.mean = self.add_weight(shape=(4,), trainable=False)` in `build`, and `self.mean.assign(mean)` once the layer is built.
#
# A file that was saved before has the weights and not the arguments. Make the model in your code with the right arguments, call it
# once, and `load_weights("model.keras")`.
#
# To test a class, compare `model.get_config()` with what you have passed before you save a long training.
#
# ## Why
#
# For a custom *layer* without `get_config`, Keras notes the arguments when the layer is made, if they are numbers, texts, tuples or
# lists. A `Model` of Keras 3.15 does not pass its arguments on to the code that notes them (`Model.__new__` in
# `keras/src/models/model.py`), so the defaults are noted. Keras 2 notes the arguments of models, too.
#
# A class that has a `get_config`, or inherits one, gets no such notes on either version. So a subclass of `Dense` with one more
# argument loses it, and so does a subclass of your own layer, loss or metric.
#
# What happens depends on the argument. If it decides the shape of a weight, loading raises. If it is a factor, predictions change.
# A rate of dropout changes nothing but the next training. If all arguments have the values of their defaults, all is right, and
# a test with the defaults finds nothing.
#
# Keras's guide asks for `get_config` in each class of your own. See [the guide to
# saving](https://keras.io/guides/serialization_and_saving/#custom-objects).

# %% tags=["figure"]
# The program above with other classes: what the loaded model predicts, on both versions of Keras.
from strategy_clinic import figures

text = session.texts["broken"]
CALL, METHOD = "Scaled(3.0)", "    def call("
IN_SEQUENTIAL = "tf.keras.Sequential([tf.keras.Input((2,)), Scaled(3.0)])"
IN_SCOPE = 'with tf.distribute.MirroredStrategy(["CPU:0"]).scope():\n    model = Scaled(3.0)'
LAYER = text.replace("tf.keras.Model)", "tf.keras.layers.Layer)").replace(CALL, IN_SEQUENTIAL)
NOTHING_ADDED = "    def get_config(self):\n        return super().get_config()\n\n"
SUBCLASS = """import tensorflow as tf


@tf.keras.utils.register_keras_serializable("clinic")
class Scaled(tf.keras.layers.Dense):
    def __init__(self, units, factor=1.0, **kwargs):
        super().__init__(units, **kwargs)
        self.factor = factor

    def call(self, inputs):
        return self.factor * super().call(inputs)


dense = Scaled(1, 3.0, kernel_initializer="ones")
model = tf.keras.Sequential([tf.keras.Input((2,)), dense])
"""
LOSS = """import tensorflow as tf


@tf.keras.utils.register_keras_serializable("clinic")
class Scaled(tf.keras.losses.Loss):
    def __init__(self, factor=1.0, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def call(self, labels, outputs):
        return self.factor * tf.abs(labels - outputs)[:, 0]


model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
model.compile("sgd", Scaled(3.0))
model.save("model.keras")
loaded = tf.keras.models.load_model("model.keras")
print("before saving:", model.loss.factor)
print("after loading:", loaded.loss.factor)
"""
END = text[text.index("print(") :]
WAYS = {
    "a Model": text,
    "a Model, made in a scope": text.replace(f"model = {CALL}", IN_SCOPE),
    "a Model in a Sequential": text.replace(CALL, IN_SEQUENTIAL),
    "a Model, made with the default": text.replace(CALL, "Scaled(1.0)"),
    "a Model, no **kwargs": text.replace(", **kwargs", "").replace("**kwargs", ""),
    "a Model, the argument is a shape": text.replace("Dense(1,", "Dense(int(factor),"),
    "a Model, with get_config": session.texts["fixed"],
    "a Layer": LAYER,
    "a Layer, get_config adds nothing": LAYER.replace(METHOD, NOTHING_ADDED + METHOD),
    "a subclass of Dense": SUBCLASS + END,
    "a Loss": LOSS,
}
here = session.setup.but(strategy="default", devices=1, save_format="keras")
printed = session.prints(WAYS, [here.but(keras=3), here.but(keras=2)])


def outcome(words):
    if "Error" in words:
        return "raises"
    before, after = (line.split()[-1] for line in words.splitlines()[:2])
    return "the same" if before == after else "another"


FOUND = {way: [outcome(words) for words in row] for way, row in printed.items()}
figures.words(
    FOUND, ["Keras 3", "Keras 2"], ("another", "raises"), "Is the loaded object the same?"
)

# %% tags=["tests"]
# The fix for other arguments and constructors, after a step of `fit`, without a strategy and on four devices.
CLASSES = """import numpy as np
import tensorflow as tf

strategy = tf.distribute.get_strategy()
saving = tf.keras.utils


@saving.register_keras_serializable("clinic")
class Words(tf.keras.Model):
    def __init__(self, words=5, inner=None, weights_of=(1.0,)):
        super().__init__()
        self.words, self.inner, self.weights_of = words, inner, weights_of
        self.embedding = tf.keras.layers.Embedding(words, 2)

    def call(self, inputs):
        return self.inner(self.embedding(inputs)[:, 0]) * self.weights_of[0]

    def get_config(self):
        inner = saving.serialize_keras_object(self.inner)
        return {"words": self.words, "inner": inner, "weights_of": list(self.weights_of)}

    @classmethod
    def from_config(cls, config):
        return cls(**config | {"inner": saving.deserialize_keras_object(config["inner"])})


with strategy.scope():
    model = Words(9, tf.keras.layers.Dense(1), np.array([3.0]).tolist())
    model.compile("sgd", "mse")
ids = tf.constant([[8]] * 8)
model.fit(ids, tf.ones((8, 1)), batch_size=8, verbose=0)
model.save("words.keras")
with strategy.scope():
    loaded = tf.keras.models.load_model("words.keras")
print("the same:", np.allclose(model(ids), loaded(ids)), loaded.words)
"""
FOUR = here.but(strategy="mirrored", devices=4)
places = [each.but(keras=version) for each in (here, FOUR) for version in (2, 3)]
assert session.prints({"words": CLASSES}, places)["words"] == ["the same: True 9"] * 4

# %% [markdown]
# ## Try other setups
#
# With Keras 2 both programs print the same.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on both versions of Keras:

# %% tags=["table"]
session.table([here, here.but(keras=session.setup.other_keras)])

# %% [markdown]
# ## Exercise
#
# Two models with other rates of dropout are saved and loaded. They predict the same and would train otherwise. Change the class so
# that each rate is kept.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM30](fm30_custom_object_unknown.ipynb): the class is not found, or its constructor refuses what the file has.
# - [FM06](fm06_architecture_changed.ipynb): weights that do not fit the model.
# - [FM29](fm29_optimizer_state_lost.ipynb): a loaded model predicts the same, and its optimizer starts from zero.
# - [FM05](fm05_untracked_variable.ipynb): a variable that no file holds.
