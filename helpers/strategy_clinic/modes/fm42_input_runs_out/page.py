# %% [markdown]
# # FM42. `Your input ran out of data` or `End of sequence`: fewer batches than `steps_per_epoch * epochs`
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `` UserWarning: Your input ran out of data; interrupting training. Make sure that your dataset or generator can generate at least `steps_per_epoch * epochs` batches. `` | `fit` | 3 |
# | `` WARNING:tensorflow:Your input ran out of data; interrupting training. Make sure that your dataset or generator can generate at least `steps_per_epoch * epochs` batches (in this case, 6 batches). `` | `fit` | 2 |
# | no message: `loss: 0.0000e+00` | `fit`, in an epoch without a step | 2, 3 |
# | `OutOfRangeError: … End of sequence` | `next(iterator)` in a `tf.function` | 2, 3 |
# | `StopIteration` | `next(iterator)` outside of one | 2, 3 |
#
# The dataset or generator ends before the number of steps that you asked for is reached, because it is read only once.
#
# *In `fit` a warning and a wrong result, in a custom loop an error, on Keras 2 and 3, with every strategy and without one.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm42",
    slug="input_runs_out",
    title="`Your input ran out of data` or `End of sequence`: fewer batches than `steps_per_epoch * epochs`",
    sees="`Your input ran out of data`, a loss of 0.0 in `fit`, or `End of sequence`",
    fix="call `dataset.repeat()`, or leave out `steps_per_epoch`; wrap a generator in `from_generator`",
    document="003",
    switches=("keras",),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'losses: \[3\.84, 0\.0, 3\.26\]'",
            keras=(3,),
        ),
        Symptom("SilentFailure", r"it prints 'losses: \[3\.84, 0\.0\]'", keras=(2,)),
    ),
    prints="losses: [3.84, 3.26, 2.77]",
    exercise_prints="sum of three epochs: 360",
    unavailable={
        "multi_worker": "Keras 3 has no `fit` for several workers",
        "parameter_server": "Keras 3 has no `fit` for parameter servers",
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm42", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# `fit` reads 16 examples from a file, in batches of eight. The second epoch makes no step, and its loss is reported as 0.0.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# **A Python generator** can be read only once. Pass the function that creates it to `from_generator`, which calls it again for
# each epoch:
#
# ```python
# signature = (tf.TensorSpec((None, 1)), tf.TensorSpec((None, 1)))  # of one batch: inputs, labels
# dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)  # batches, not batches()
# ```
#
# Without it, and without `steps_per_epoch`, Keras 3 trains each later epoch on the first two batches only: it reads two batches
# ahead and keeps them. Under a strategy the first epoch loses batches, too: see
# [FM64](fm64_generator_loses_batches.ipynb). Keras 2 reports one more epoch, with a loss of 0.0, and stops.
#
# **A dataset**: `repeat()` makes it endless, and `steps_per_epoch` says what an epoch is. Or leave out `steps_per_epoch`:
# `fit` then reads the whole dataset in each epoch. Keras 3 still warns when data of unknown length end. Without
# `validation_steps` the warning means nothing then, but `optimizer.iterations` counts the end as a step, on Keras 3.15 in
# each epoch and on Keras 2 once. A learning rate schedule then advances too far.
#
# Call `shuffle` before `repeat`.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# ## Why
#
# With `steps_per_epoch`, `fit` keeps one iterator for all epochs and takes that number of batches from it in each. A dataset
# from a file or a Python generator has no known length, so `fit` cannot tell when to start again. The second epoch finds no
# data. Keras 3 warns, ends that epoch, and creates a new iterator for the next one. Keras 2 warns and ends the training. On
# Keras 2, too many `validation_steps` do the same to the validation: `val_loss` is missing.
#
# A dataset of known length starts from the beginning by itself if its length is a multiple of `steps_per_epoch`.
# `tf.data.experimental.assert_cardinality` declares the length of a file. If the length is not a multiple, the epoch in which the
# data end is too short, for arrays too.
#
# In a custom loop nothing restarts an iterator. Either repeat the dataset, or call `iter(...)` at the start of each epoch.
#
# The table shows how many steps `fit` makes in each of three epochs. The files and the array have `steps_per_epoch=2`. See
# [Model.fit](https://www.tensorflow.org/api_docs/python/tf/keras/Model#fit).

# %% tags=["figure"]
# Counts the steps of each epoch of `fit` for several datasets.
import warnings

import numpy as np
import tensorflow as tf

from strategy_clinic import build_strategy, figures

warnings.filterwarnings("ignore", "Your input ran out of data")
warnings.filterwarnings("ignore", "`shuffle=True` was passed")


def steps_of_fit(data, wanted=2, steps_per_epoch=2):
    counts = [0, 0, 0]
    epochs = []
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")

    def count(batch, logs):
        counts[epochs[-1]] += 1

    counter = tf.keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: epochs.append(epoch), on_train_batch_end=count
    )
    options = {"steps_per_epoch": steps_per_epoch, "verbose": 0}
    model.fit(data, epochs=3, callbacks=[counter], **options)
    return [f"{count} of {wanted}" for count in counts]


def batches():
    for _ in range(5):
        yield np.ones((8, 1)), np.ones((8, 1))


array = tf.data.Dataset.from_tensor_slices((tf.ones((24, 1)), tf.ones((24, 1))))
stream = array.take(16).filter(lambda x, y: True)  # its length is not known, as that of a file
length = tf.data.experimental.assert_cardinality
SIGNATURE = (tf.TensorSpec((8, 1)), tf.TensorSpec((8, 1)))
from_function = tf.data.Dataset.from_generator(batches, output_signature=SIGNATURE)
with build_strategy(session.setup.but(strategy="mirrored", devices=2)).scope():
    first_of_two_devices = steps_of_fit(batches(), 5, None)[0]
assert session.setup.keras == 2 or first_of_two_devices != "5 of 5"  # 2 or 3, it varies
STEPS = {
    "generator": steps_of_fit(batches(), 5, None),
    "from_generator": steps_of_fit(from_function, 5, None),
    "file": steps_of_fit(stream.batch(8)),
    "file.repeat()": steps_of_fit(stream.repeat().batch(8)),
    "file, no steps_per_epoch": steps_of_fit(stream.batch(8), steps_per_epoch=None),
    "file, length declared": steps_of_fit(stream.batch(8).apply(length(2))),
    "array of 3 batches": steps_of_fit(array.batch(8)),
}
COLUMNS = [f"epoch {number}" for number in (1, 2, 3)]
wrong = {word for row in STEPS.values() for word in row if len(set(word.split(" of "))) > 1}
figures.words(STEPS, COLUMNS, wrong, "How many steps does each epoch have?")

# %% [markdown]
# ## Try other setups
#
# With Keras 2 the training ends after one epoch and an empty one. The strategy changes nothing.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs with both versions of Keras, without a strategy, and on a TPU as the clinic emulates it:

# %% tags=["table"]
two = session.setup.but(strategy="mirrored", devices=2)
one = two.but(strategy="default", devices=1)
tpu = two.but(strategy="tpu_traced", devices=8)
session.table([two, two.but(keras=session.setup.other_keras), one, tpu])

# %% [markdown]
# ## Exercise
#
# This custom loop takes two batches in each of three epochs, and raises `End of sequence` in the second. Change the program so
# that each epoch reads the data from the beginning. It should print `360`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM21](fm21_dataset_misdistributed.ipynb): each replica takes a whole batch, so the data end earlier than you computed.
# - [FM19](fm19_partial_last_batch.ipynb): the last batch is there, and too small for all replicas.
# - [FM26](fm26_replica_count_changed.ipynb): `steps_per_epoch` after the number of replicas has changed.
# - [FM48](fm48_file_sharding.ipynb): the data are in fewer files than there are workers.
