# %% [markdown]
# # FM74. An exported model takes only the first batch's size, or floats for numbers of words
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `InvalidArgumentError: … Input to reshape is a tensor with 12 values, but the requested shape has 32` | a loaded signature, for a batch of another size | 3 |
# | `InvalidArgumentError: … Specified a list with shape [8,2] from a tensor with shape [3,2] …` | the same, for an `LSTM` or a `GRU` | 3 |
# | `InvalidArgumentError: cannot compute __inference_signature_wrapper_… was expected to be a float tensor but is a int32 tensor` | a loaded signature of a model with an `Embedding` | 2, 3 |
# | `AssertionError: Called a function referencing variables which have been deleted. …` | `tf.saved_model.load(folder).serve(batch)`: nobody keeps what is loaded | 2, 3 |
#
# Nobody has told a model without an Input what its inputs are. `tf.saved_model.save` of Keras 3 stores the shape of the first
# batch, and under a strategy that of one replica's part, with floats as the type.
#
# *Raises on Keras 3, with every strategy or none. On Keras 2 only the type is wrong, in a `Sequential`.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm74",
    slug="saved_model_of_first_batch",
    title="An exported model takes only the first batch's size, or floats for numbers of words",
    sees="a SavedModel that TensorFlow or TensorFlow Serving loads raises for one example, or for whole numbers",
    fix="write the signature: `signatures=tf.function(model, [tf.TensorSpec((None, 4), tf.int32)])`, or give the model an Input",
    document="004",
    switches=("strategy", "devices", "keras"),
    symptoms=(
        Symptom(
            "InvalidArgumentError",
            r"Input to reshape is a tensor with 12 values, but the requested shape",
            keras=(3,),
        ),
    ),
    prints="outputs for three examples: [3]",
    exercise_prints="outputs for three sentences: [3]",
    unavailable={
        "multi_worker": "`evaluate` of Keras 3 does not run on several workers",
        "parameter_server": "`evaluate` does not accept arrays there",
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "saved_model"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm74", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# A model of its own class sees one batch of 16 examples, is written as a SavedModel, loaded, and asked for three examples.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Say what one batch is: `None` stands for any number of examples.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# For Keras 3 alone, `model.export("exported", input_signature=[tf.TensorSpec((None, 4), tf.int32)])` does the same. Without
# `input_signature`, `export` takes any number of examples, and still floats. A model that begins with `tf.keras.Input((4,),
# dtype="int32")` needs neither: its SavedModel takes whole numbers and any number of examples. On Keras 2 a `Sequential` with
# an `Embedding` and a `Flatten` needs it: without it, `save` raises `The last dimension of the inputs to a Dense layer should
# be defined`.
#
# `training=False` belongs to the signature. Keep what is loaded in a name: in `tf.saved_model.load(folder).serve(batch)` the
# variables are gone before the call.
#
# The loaded model is a function, and neither trained nor compiled. To train on, save a `.keras` file, too: see
# [FM27](fm27_format_not_loadable.ipynb). Look into a folder with `saved_model_cli show --dir exported --all`. `clinic examine`
# names this mode where the program itself loads and calls what it has written.
#
# ## Why
#
# A `Reshape`, a `Flatten` or an `LSTM` of Keras 3 asks a batch for its size. If the traced shape has a number there, the
# number is in the graph. A `Dense` or a `Dropout` does not ask. So many models take any batch although their signature names
# one size.
#
# `tf.saved_model.save` asks Keras for the shapes that the model was built with. Keras 3 answers with those of the first call. In
# a custom loop that is the first part that `strategy.run` got, and in `fit` the part of one replica. A model that is called
# with one example first, as after `load_weights`, gets 1. Types are not kept, and Keras 3 says `float32`. Keras 2 replaces the size
# by `None`, and keeps the types of a custom `Model`.
#
# Keras 3 calls the inputs `inputs` or `args_0` and the outputs `output_0`; Keras 2 used the names of the layers. For names of
# your own, let the function above return a dictionary.
#
# Keras recommends `model.export` in place of `tf.saved_model.save`. See [`export`](https://keras.io/api/models/model_saving_apis/export/).

# %% tags=["figure"]
# The size in the signature on one, two and four devices, after `evaluate` and other calls.
from strategy_clinic import figures

text = session.texts["broken"]
EVALUATE = "model.evaluate(tf.ones((16, 4)), tf.ones((16, 2, 2)), batch_size=16, verbose=0)"
SAVE = (
    'tf.saved_model.save(model, "exported")  # wrong: Keras 3 stores the shape of the first batch'
)
START = text[: text.index("outputs =")]
SIZE = """
(spec,) = exported.signatures["serving_default"].structured_input_signature[1].values()
print("size:", spec.shape[0], spec.dtype.name)
"""
LOOP = """data = tf.data.Dataset.from_tensors(tf.ones((16, 4)))
for part in strategy.experimental_distribute_dataset(data):
    strategy.run(model, args=(part,))"""
SIGNED = session.texts["fixed"]
WAYS = {
    "after evaluate": START,
    "after fit": START.replace(
        EVALUATE,
        EVALUATE.replace("evaluate", "fit"),
    ),
    "after a custom loop": START.replace(EVALUATE, LOOP),
    "after a call with one example": START.replace(EVALUATE, "model(tf.ones((1, 4)))"),
    "a written signature": SIGNED[: SIGNED.index("outputs =")],
    "export": START.replace(SAVE, 'model.export("exported")'),
}
two = session.setup.but(strategy="mirrored", devices=2, keras=3)
PLACES = {
    "no strategy": two.but(strategy="default", devices=1),
    "mirrored x2": two,
    "mirrored x4": two.but(devices=4),
    "Keras 2, x2": two.but(keras=2),
}
printed = session.prints({way: each + SIZE for way, each in WAYS.items()}, list(PLACES.values()))


def size(words):
    return words.split("size: ")[-1].split()[0].replace("None", "any")


SIZES = {way: [size(words) for words in row] for way, row in printed.items()}
figures.words(
    SIZES, list(PLACES), ("1", "4", "8", "16"), "How many examples does the signature name?"
)

# %% tags=["figure"]
# Which layers refuse another batch or whole numbers, by the way in which the model is written.
LAYERS = {
    "Dense": ("Dense(1)", "tf.ones((8, 4))"),
    "Flatten": ("Flatten()", "tf.ones((8, 4, 2))"),
    "LSTM": ("LSTM(2)", "tf.ones((8, 4, 2))"),
    "MultiHeadAttention": ("MultiHeadAttention(1, 2)", "tf.ones((8, 4, 2))"),
    "Embedding": ("Embedding(9, 2)", "tf.ones((8, 4), tf.int32)"),
}
OWN = """import tensorflow as tf


class Own(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.layer = tf.keras.layers.LAYER

    def call(self, inputs):
        return self.layer(inputs, inputs) if "Head" in "LAYER" else self.layer(inputs)


data = DATA
model = Own()
model(data)
spec = tf.TensorSpec((None, *data.shape[1:]), data.dtype, name="inputs")
WRITE
exported = tf.saved_model.load("exported")
serve = exported.signatures["serving_default"]
((name, _),) = serve.structured_input_signature[1].items()
(outputs,) = serve(**{name: data[:3]}).values()
print(len(outputs))
"""
WRITTEN = {
    "saved_model.save": 'tf.saved_model.save(model, "exported")',
    "export": 'model.export("exported")',
    "export, input_signature": 'model.export("exported", input_signature=[spec])',
    "a written signature": "serve = tf.function(lambda inputs: model(inputs, training=False), [spec])\n"
    'tf.saved_model.save(model, "exported", signatures=serve)',
}
one = two.but(strategy="default", devices=1)


def written(layer, data, way):
    return OWN.replace("LAYER", layer).replace("DATA", data).replace("WRITE", WRITTEN[way])


def served(words):
    return "takes three" if words.endswith("3") else "raises"


CELLS = [(*cell, way) for cell in LAYERS.values() for way in WRITTEN]
outcomes = session.prints({str(cell): written(*cell) for cell in CELLS}, [one])
FOUND = {
    name: [served(outcomes[str((*cell, way))][0]) for way in WRITTEN]
    for name, cell in LAYERS.items()
}
figures.words(FOUND, list(WRITTEN), "raises", "Does the loaded model take three examples?")

# %% tags=["tests"]
# Keras 2, a written signature on four devices after a loop with trained weights, and a loaded model that nobody keeps.
WITH_WEIGHTS = """import numpy as np
import tensorflow as tf

strategy = tf.distribute.get_strategy()
with strategy.scope():
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Embedding(9, 2), layers.LSTM(2), layers.Dense(1)])
    model.compile("sgd", "mse")
ids = tf.ones((8, 4), tf.int32)
model.fit(ids, tf.ones((8, 1)), batch_size=8, verbose=0)
spec = [tf.TensorSpec((None, 4), tf.int32, name="inputs")]
serve = tf.function(lambda inputs: model(inputs, training=False), spec)
tf.saved_model.save(model, "exported", signatures=serve)
with strategy.scope():
    loaded = tf.saved_model.load("exported")
(outputs,) = loaded.signatures["serving_default"](ids[:3]).values()
print("same:", np.allclose(outputs, model(ids[:3])))
try:
    body = tf.keras.Sequential([tf.keras.Input((4,)), layers.Dense(1)])
    body.export("served")
    tf.saved_model.load("served").serve(tf.ones((3, 4)))
except AssertionError as error:
    print(str(error)[:46])
"""
places = [one, one.but(keras=2), two.but(devices=4), two.but(devices=4, keras=2)]
for words in session.prints({"served": WITH_WEIGHTS}, places)["served"]:
    first, *_, last = words.splitlines()
    assert first == "same: True" and last.startswith(
        "Called a function referencing variables which"
    )

# %% [markdown]
# ## Try other setups
#
# With more devices the signature names fewer examples. With Keras 2 it takes any number.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, on two devices and four, and with the other version of Keras:

# %% tags=["table"]
session.table([one, two, two.but(devices=4), two.but(keras=2)])

# %% [markdown]
# ## Exercise
#
# This model takes sentences of four word numbers. It was written after a batch of 16, and should answer for three sentences. Change
# the program so that it does, on one, two, four or eight devices.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM27](fm27_format_not_loadable.ipynb): `load_model` does not read a SavedModel on Keras 3.
# - [FM72](fm72_model_with_defaults.ipynb): a custom model that is loaded with other arguments.
# - [FM05](fm05_untracked_variable.ipynb): a variable that no file holds.
# - [FM43](fm43_retracing_every_step.ipynb): a function that is traced for each size.
