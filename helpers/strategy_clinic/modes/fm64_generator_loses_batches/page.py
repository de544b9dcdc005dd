# %% [markdown]
# # FM64. `fit` with a Python generator under a strategy: batches are lost
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `trained on all ten batches: False` | `fit(batches())` under a strategy: six or seven of ten batches | 3 |
# | no message: another loss | `evaluate(batches())`, or `validation_data=batches()` in `fit`, under a strategy | 3 |
#
# Before `fit` and `evaluate` of Keras 3 begin under a strategy, they read a batch to learn its shape, and tf.data reads further
# ones ahead. Keras can give back two batches of a generator. The rest is gone.
#
# *Wrong result without an error, on Keras 3 only, under every strategy, with one device, too.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm64",
    slug="generator_loses_batches",
    title="`fit` with a Python generator under a strategy: batches are lost",
    sees="an epoch of a generator has fewer steps under a strategy, and `evaluate` gives another loss",
    fix="pass `tf.data.Dataset.from_generator(batches, output_signature=…)` with the function, in place of `batches()`",
    document="003",
    switches=("strategy", "devices", "keras"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'trained on all ten batches: False'",
            strategies=("one_device", "mirrored", "central_storage", "tpu_traced", "tpu"),
            keras=(3,),
        ),
    ),
    prints="trained on all ten batches: True",
    exercise_prints="loss is that of the whole table: True",
    unavailable={
        "multi_worker": "`fit` of Keras 3 does not run on several workers",
        "parameter_server": "`fit` of Keras 3 does not run there",
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm64", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# A generator makes ten batches of eight examples, and a callback counts the steps of `fit`.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Give tf.data the function, without calling it, and say what one batch is. tf.data calls the function again whenever somebody
# reads the dataset, so what Keras reads for shapes is not missing later.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# A function with arguments goes into a `lambda: batches(files)`. The signature has the shape and the type of what is yielded,
# `float32` if you name no other: `tf.TensorSpec((None, 20), tf.int32)` for rows of 20 word numbers. The first batch, and what
# was read ahead with it, is made twice. If that costs much, or the function counts its calls, use a `keras.utils.PyDataset`,
# which Keras asks for batches by their number.
#
# ## Why
#
# A generator can be read once. Keras takes two batches from it to learn shapes, and keeps them. Under a strategy it then makes
# an iterator over the distributed dataset and takes a batch, whose shapes it builds the model with. Every call of `fit` and
# `evaluate` does that, also for a model that is built: see `_maybe_symbolic_build` in
# `keras/src/backend/tensorflow/trainer.py`. By then tf.data has read more than two batches. How many are lost depends on how
# far it has got: three or four of ten, and of a hundred, on two, three and four devices here.
#
# So this matters for a test set that is evaluated batch by batch, and less for a long epoch. An endless generator with
# `steps_per_epoch` makes all its steps, and only begins later in its data. `predict` loses nothing.
#
# Keras 2 reads no batch in advance. This is a bug of Keras 3, which is not reported yet: `upstream/generator_loses_batches.md`
# is ready. It was seen on virtual devices of a CPU. One may answer that a strategy needs data that can be read twice. But the
# documentation of `fit` lists "a Python generator function" among its inputs, and nothing warns.
#
# The table tells whether `fit`, `evaluate` and `predict` get all batches. See
# [`fit`](https://keras.io/api/models/model_training_apis/).

# %% tags=["figure"]
# The program above with other data and other methods, on one and two devices, without a strategy, and on Keras 2.
from strategy_clinic import figures

FIT = "model.fit(batches(), verbose=0, callbacks=[count])"
BUILT = "model.fit(tf.zeros((8, 1)), tf.zeros((8, 1)), verbose=0)\n"
ENDLESS = "(pair for _ in range(99) for pair in batches())"
ARRAYS = (
    "model.fit(tf.zeros((80, 1)), tf.zeros((80, 1)), batch_size=8, verbose=0, callbacks=[count])"
)
SIGNATURE = (
    "tf.data.Dataset.from_generator(batches, output_signature=(tf.TensorSpec((None, 1)),) * 2)"
)
SEQUENCE = """
class Numbered(tf.keras.utils.Sequence):
    def __len__(self):
        return 10

    def __getitem__(self, number):
        return tf.fill((8, 1), float(number)), tf.zeros((8, 1))


"""
two = session.setup.but(strategy="mirrored", devices=2)
PLACES = {
    "no strategy": two.but(strategy="default", devices=1, keras=3),
    "mirrored x1": two.but(devices=1, keras=3),
    "mirrored x2": two.but(keras=3),
    "Keras 2, x2": two.but(keras=2),
}
WAYS = {
    "fit, generator": FIT,
    "fit, generator, model is built": BUILT + FIT,
    "fit, endless, steps_per_epoch=10": FIT.replace("batches()", f"{ENDLESS}, steps_per_epoch=10"),
    "fit, from_generator": FIT.replace("batches()", SIGNATURE),
    "fit, PyDataset": SEQUENCE + FIT.replace("batches()", "Numbered()"),
    "fit, arrays": ARRAYS,
}
programs = session.variants("broken", FIT, WAYS)
for method in ("evaluate", "predict"):
    event = f"on_{method.replace('evaluate', 'test')}_batch_end"
    called = programs["fit, generator"].replace("model.fit", f"model.{method}")
    programs[f"{method}, generator"] = called.replace("on_train_batch_end", event)
printed = session.prints(programs, list(PLACES.values()))
FOUND = {
    way: ["all" if words.endswith("True") else "some lost" for words in row]
    for way, row in printed.items()
}
figures.words(FOUND, list(PLACES), "some lost", "Which batches does Keras use?")

# %% [markdown]
# ## Try other setups
#
# Without a strategy (`default`), or with Keras 2, all ten batches are used.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs without a strategy, on one device, two and four, under central storage, and with the other version of Keras:

# %% tags=["table"]
SETUPS = [two.but(devices=count) for count in (1, 2, 4)]
OTHERS = [two.but(strategy="central_storage"), two.but(keras=session.setup.other_keras)]
session.table([two.but(strategy="default", devices=1), *SETUPS, *OTHERS])

# %% [markdown]
# ## Exercise
#
# The model returns its input and is evaluated on a table in ten parts. Change how the parts are passed, so that the loss is
# that of the whole table on one, two, four or eight devices.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM42](fm42_input_runs_out.ipynb): a generator is spent after the first epoch.
# - [FM63](fm63_input_bound.ipynb): a generator is slow, and the devices wait for it.
# - [FM19](fm19_partial_last_batch.ipynb): a first batch that the replicas cannot share evenly raises at the same place.
# - [FM44](fm44_fit_reports_another_number.ipynb): another number on several devices because of a metric.
