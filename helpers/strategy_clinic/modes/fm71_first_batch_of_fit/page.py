# %% [markdown]
# # FM71. `Inputs to operation AddN … must have the same size and shape` before the first step of `fit`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `InvalidArgumentError: … Inputs to operation AddN of type AddN must have the same size and shape. …` | `fit` and `evaluate`, with an uneven first batch | 3 |
# | `InvalidArgumentError: … Value for attr 'T' of string is not in the list of allowed values: …` | `fit` and `evaluate`, with texts as inputs or labels; `of bool` with booleans | 3 |
# | `RuntimeError: … Value passed to parameter 'indices' has DataType float32 not in list of allowed values: …` | `fit` and `evaluate`, with whole numbers that `call` gives to `tf.gather` or `tf.one_hot` | 3 |
# | `AttributeError: 'SparseTensor' object has no attribute 'device'` | `fit` and `evaluate`, with sparse inputs; `'RaggedTensor'` with ragged ones | 3 |
#
# Before its first step, `fit` of Keras 3 averages one batch over the replicas, to learn shapes. Parts of different sizes have
# no average, and neither have texts and booleans. The average of whole numbers is `float32`.
#
# *Raises on Keras 3, in `fit` and `evaluate`, under `MirroredStrategy` with more than one replica. Keras 2 works.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm71",
    slug="first_batch_of_fit",
    title="`Inputs to operation AddN … must have the same size and shape` before the first step of `fit`",
    sees="`fit` or `evaluate` raises about `AddN`, a `string` or a `SparseTensor`, on several devices and before the first step",
    fix="use batches that the number of replicas divides, also as `validation_data`, and dense numbers in place of texts",
    document="003",
    switches=("strategy", "devices", "keras"),
    symptoms=(
        Symptom(
            "InvalidArgumentError",
            r"Inputs to operation AddN of type AddN must have the same size and shape",
            strategies=("mirrored",),
            devices=(2, 4, 8),
            keras=(3,),
        ),
    ),
    prints="epochs: 1",
    exercise_prints="epochs: 1",
    unavailable={
        "multi_worker": "`fit` of Keras 3 does not run on several workers",
        "parameter_server": "`fit` does not accept arrays there",
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm71", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# An epoch of `fit` with 48 examples. The first batch has 15, so one replica gets eight and the other seven.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Choose a batch size that the number of replicas divides: 16 for two, four or eight, and 30 or 33 for three.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# The data must also fill the *first* batch, or leave it even: 13 examples in batches of 16 raise on two devices. This holds for
# the data of `evaluate`, and for `validation_data`, whose first batch is taken at the end of the first epoch. A later batch may
# be uneven, but not without an effect: see [FM19](fm19_partial_last_batch.ipynb), and [FM52](fm52_empty_part.ipynb) if a
# replica gets no example.
#
# Texts and booleans: turn them into numbers before the model, so that the strategy divides numbers. For texts this is also
# faster, since a GPU has none. For booleans write `tf.cast(label, tf.float32)`.
#
# ```python
# dataset = dataset.map(lambda text, label: (to_numbers(text), label))  # to_numbers is a TextVectorization
# ```
#
# Whole numbers: write `tf.cast(x, tf.int32)` in `call`, before `tf.gather` or `tf.one_hot`. `Embedding` does so itself.
#
# Sparse tensors: `dataset.map(lambda x, y: (tf.sparse.to_dense(x), y))`, and `x.to_tensor()` for ragged ones. If that needs
# too much memory, write the loop with `strategy.run`, which averages nothing, or use Keras 2.
#
# ## Why
#
# A model must have its variables before a strategy can train it. Keras 3 therefore takes a batch, adds up the parts of the
# replicas and divides by their number, and calls the model without values on something of this shape. It does this in each call
# of `fit` and `evaluate`, also if the model is built. The code is `_maybe_symbolic_build` in
# `keras/src/backend/tensorflow/trainer.py`. Only the shape is needed, which the data know without a batch.
#
# `predict` works, and so does central storage, where the parts are not added up in this way. The same line loses batches of a
# Python generator: see [FM64](fm64_generator_loses_batches.ipynb). A comment in
# [keras#19246](https://github.com/keras-team/keras/issues/19246) quotes the message. `upstream/generator_loses_batches.md` is
# ready to be reported, with a repair. One may answer that batches should be even; but a later one may be uneven, and the
# documentation of `batch_size` names no limit. All this was run on virtual devices of a CPU.
#
# The table tells which data `fit` accepts.

# %% tags=["figure"]
# `fit`, `evaluate` and `predict` with other data, on one, two and four devices and on Keras 2.
from strategy_clinic import figures

HEAD, FIT = session.texts["broken"].partition("x, y = ")[0], "model.fit(dataset, verbose=0)\n"
MODEL = """
with strategy.scope():
    inputs = tf.keras.Input({})
    model = tf.keras.Model(inputs, {})
    model.compile("sgd", "mse")
dataset = tf.data.Dataset.from_tensor_slices(({}, tf.ones(({}, 1)))).batch({})
"""
DENSE = "tf.keras.layers.Dense(1)(inputs)"
TABLE = "tf.sparse.from_dense(tf.ones((24, 3)))"
LOOKUP = 'tf.keras.layers.StringLookup(vocabulary=["a", "b"])'
WORDS = f"tf.keras.layers.Dense(1)(tf.keras.layers.Embedding(3, 2)({LOOKUP}(inputs))[:, 0])"
TO_DENSE = "dataset = dataset.map(lambda x, y: (tf.sparse.to_dense(x), y))\n"


def numbers(count, batch):
    return MODEL.format("(3,)", DENSE, f"tf.ones(({count}, 3))", count, batch)


TEXTS = MODEL.format('(1,), dtype="string"', WORDS, "[['a'], ['b']] * 12", 24, 12)
SPARSE = MODEL.format("(3,), sparse=True", DENSE, TABLE, 24, 12)
CASES = {
    "24 in batches of 12": numbers(24, 12) + FIT,
    "29 in batches of 12": numbers(29, 12) + FIT,
    "24 in batches of 11": numbers(24, 11) + FIT,
    "11 in one batch of 12": numbers(11, 12) + FIT,
    "11 in one batch, evaluate": numbers(11, 12) + FIT.replace("fit", "evaluate"),
    "11 in one batch, predict": numbers(11, 12) + FIT.replace("fit", "predict"),
    "texts": TEXTS + FIT,
    "sparse": SPARSE + FIT,
    "sparse, to_dense": MODEL.format("(3,)", DENSE, TABLE, 24, 12) + TO_DENSE + FIT,
}
programs = {name: f'{HEAD}{text}print("works")\n' for name, text in CASES.items()}
two = session.setup.but(strategy="mirrored", devices=2)
PLACES = {
    "mirrored x1": two.but(devices=1, keras=3),
    "x2": two.but(keras=3),
    "x4": two.but(devices=4, keras=3),
    "Keras 2, x2": two.but(keras=2),
}
printed = session.prints(programs, list(PLACES.values()))
WORKS = {name: [words == "works" for words in row] for name, row in printed.items()}
figures.grid(WORKS, list(PLACES), "works", "raises", "Which data does Keras accept?")

# %% tags=["figure"]
# What each replica held in a step of both programs and how they ended, beside one device with the same examples.
session.inside(two)

# %% [markdown]
# ## Try other setups
#
# With one device nothing has to be added up, and under central storage or with Keras 2 nothing is averaged.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one, two and four devices, under central storage, and with the other version of Keras:

# %% tags=["table"]
SETUPS = [two.but(devices=count) for count in (1, 2, 4)]
OTHERS = [two.but(strategy="central_storage"), two.but(keras=session.setup.other_keras)]
session.table([*SETUPS, *OTHERS])

# %% [markdown]
# ## Exercise
#
# This model turns texts into numbers itself. Change the program so that `fit` gets numbers, and prints `epochs: 1` on one, two,
# four or eight devices.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM19](fm19_partial_last_batch.ipynb): the mean over an uneven batch, in a loop of your own.
# - [FM64](fm64_generator_loses_batches.ipynb): the same line loses batches of a Python generator.
# - [FM52](fm52_empty_part.ipynb): a replica that gets no example of the last batch.
# - [FM11](fm11_unbuilt_model.ipynb): other causes of an error in `_symbolic_build`.
