# %% [markdown]
# # FM53. A plain dataset in `strategy.run`, or `train_on_batch`: every replica does the same work
#
# | Message | Raised by | Keras |
# |---|---|---|
# | no message: `examples in one step: 32  bias after it: [0.2]` | `strategy.run` on two devices: each takes the same 16 examples | 2, 3 |
# | no message: `predictions for 8 examples: 16` | `predict_on_batch` on two devices | 3 |
#
# `strategy.run` does not divide its arguments: an ordinary tensor goes to every replica as a whole. Only batches of a
# distributed dataset are divided.
#
# *Wrong result or wasted time without an error, on Keras 2 and 3, under `MirroredStrategy`, central storage,
# `MultiWorkerMirroredStrategy` and an emulated TPU. On Keras 3 only, `train_on_batch` wastes time and trains rightly, and
# `predict_on_batch` returns each prediction n times.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm53",
    slug="same_work_on_every_replica",
    title="A plain dataset in `strategy.run`, or `train_on_batch`: every replica does the same work",
    sees="more devices make training no faster, or `predict_on_batch` returns each prediction several times",
    fix="give `strategy.run` batches of `experimental_distribute_dataset`; use one `fit` instead of `train_on_batch`",
    document="000",
    switches=("strategy", "devices"),
    symptoms=(
        Symptom(
            "SilentFailure",
            r"it prints 'examples in one step: (32|64|128)  bias after it: \[0\.[248]\]'",
            strategies=("mirrored", "central_storage", "multi_worker", "tpu_traced", "tpu"),
            devices=(2, 4, 8),
        ),
    ),
    prints="examples in one step: 16  bias after it: [0.1]",
    exercise_prints="predictions for 8 examples: 8",
    unavailable={
        "parameter_server": "its workers take their steps one by one, so no batch is divided"
    },
)

# %% tags=["parameters"]
strategy = "mirrored"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm53", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# One step of a custom training loop, for a batch of 16 examples. It adds up the examples of all replicas.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Iterate over `strategy.experimental_distribute_dataset(dataset)`. Each replica then gets its part of every batch.
#
# If the data are in arrays, make a dataset of them first: `tf.data.Dataset.from_tensor_slices((inputs, labels)).batch(16)`.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# With Keras 3, three methods do not divide their batch under a strategy. The weights of `train_on_batch` are right, and so are
# those of a GAN that was trained with it. To use all devices:
#
# - `train_on_batch`: one `fit` over the whole dataset, with a `train_step` of your own if needed, or the loop above. Not `fit`
#   for each batch: it prepares a dataset and callbacks each time, and took 440 ms where `train_on_batch` took 1.4 ms.
# - `test_on_batch`: one `evaluate` over the whole dataset.
# - `predict_on_batch(x)`: `model(x, training=False)` for one batch, on one device, and `predict` for a dataset.
#
# That is a bug of Keras 3, in `keras/src/backend/tensorflow/trainer.py`: `predict_on_batch`, which "returns predictions for a
# single batch of samples", returns each n times, and two devices take as long as one. It was seen on virtual devices of a CPU, and
# is not reported yet; `upstream/on_batch_methods_not_distributed.md` is ready.
#
# ## Why
#
# `strategy.run(step, args=...)` calls the step once for each replica. It replaces a `PerReplica` value by the part of this
# replica, and passes everything else on as it is. That is useful for weights or a learning rate. For a batch it means that each
# replica computes the same numbers.
#
# What follows depends on the loss:
#
# - A loss that is divided by the global batch size, as here, gives updates that are n times too large.
# - A loss that is also divided by the number of replicas, as in `train_on_batch`, gives the right update. Then nothing is wrong
#   but the time: two devices take as long as one.
#
# To find out, count the examples that a replica gets, with `print(inputs.shape)` in the step. It prints once for each replica
# while TensorFlow traces the step.
#
# The table shows how many of 8 examples each of two replicas gets, and the picture a step of both programs. See [Distributed
# input](https://www.tensorflow.org/tutorials/distribute/input).

# %% tags=["figure"]
# A model that counts the examples of each replica, called in other ways, with both versions of Keras.
from strategy_clinic import figures

LINES = "\n".join(session.texts["broken"].splitlines()[:5])
COUNTING = (
    LINES
    + """
counts = []


class Counting(tf.keras.layers.Layer):
    def call(self, inputs):
        tf.py_function(lambda size: counts.append(int(size)), [tf.shape(inputs)[0]], [])
        return inputs


with strategy.scope():
    layers = [tf.keras.Input((1,)), Counting(), tf.keras.layers.Dense(1)]
    model = tf.keras.Sequential(layers)
    model.compile("sgd", "mse")
inputs = tf.ones((8, 1))
dataset = tf.data.Dataset.from_tensor_slices(inputs).batch(8)
run = tf.function(lambda batch: strategy.run(model, args=(batch,)))
counts.clear()
CALL
print(*(f"{count} of 8" for count in counts[:2]), sep=", ")
"""
)
CALLS = {
    "run, batch of a dataset": "run(next(iter(dataset)))",
    "run, distributed batch": "run(next(iter(strategy.experimental_distribute_dataset(dataset))))",
    "train_on_batch": "model.train_on_batch(inputs, inputs)",
    "predict_on_batch": "model.predict_on_batch(inputs)",
    "fit": "model.fit(inputs, inputs, batch_size=8, verbose=0)",
    "predict": "model.predict(inputs, batch_size=8, verbose=0)",
}
two = session.setup.but(strategy="mirrored", devices=2)
both = [two.but(keras=3), two.but(keras=2)]
printed = session.prints(
    {name: COUNTING.replace("CALL", call) for name, call in CALLS.items()}, both
)
figures.words(
    printed, ["Keras 3", "Keras 2"], {"8 of 8, 8 of 8"}, "How many examples does each replica get?"
)

# %% tags=["figure"]
# What each replica held in a step of both programs, and one device with the same examples.
session.inside(two)

# %% [markdown]
# ## Try other setups
#
# With one device there is one replica, and nothing to divide. With four, one step counts 64 examples.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on one, two and four devices, with the other version of Keras, and with two processes:

# %% tags=["table"]
others = [two.but(keras=session.setup.other_keras), two.but(strategy="multi_worker")]
session.table([two.but(devices=1), two, two.but(devices=4), *others])

# %% [markdown]
# ## Exercise
#
# The model returns its input. Change the program so that it returns one prediction for each example: `8`. With Keras 2 it does so
# as it is.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM21](fm21_dataset_misdistributed.ipynb): a dataset function that batches by the global size.
# - [FM37](fm37_loss_scaled_per_replica.ipynb): the batch is divided, and the loss is scaled wrongly.
# - [FM26](fm26_replica_count_changed.ipynb): the global batch grows with the number of devices.
