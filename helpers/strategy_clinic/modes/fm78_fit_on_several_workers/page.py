# %% [markdown]
# # FM78. `Attempt to convert a value (PerReplica…` in `fit`: Keras 3 does not train on several workers
#
# | Message | Raised by | Keras |
# |---|---|---|
# | `ValueError: Attempt to convert a value (PerReplica:{…}) with an unsupported type (<class 'tensorflow.python.distribute.values.PerReplica'>) to a Tensor.` | `fit` and `evaluate`, on each of two workers | 3 |
# | `ValueError: Invalid reduction dimension 0 for input with 0 dimensions…` | `train_on_batch`; `fit` up to Keras 3.3 | 3 |
# | `ValueError: To use this dataset, you need to pass this dataset to ClusterCoordinator.create_per_worker_dataset.` | `fit`, `evaluate` and `predict` under `ParameterServerStrategy` | 3 |
#
# `fit` reads a batch to learn the shapes of the model, and reduces the losses of a step. Keras 3 does both for the replicas of
# one process only. Under `MultiWorkerMirroredStrategy` each process has its own.
#
# *Raises on Keras 3, under `MultiWorkerMirroredStrategy` with two workers or more. Keras 2 works.*

# %% tags=["declaration"]
from strategy_clinic import FailureMode, Symptom

MODE = FailureMode(
    id="fm78",
    slug="fit_on_several_workers",
    title="`Attempt to convert a value (PerReplica…` in `fit`: Keras 3 does not train on several workers",
    sees="on two workers `fit` of Keras 3 raises `Attempt to convert a value (PerReplica` before its first step",
    fix="write the loop with `strategy.run`, or train with Keras 2, which `tf_keras` is",
    document="003",
    switches=("strategy", "keras"),
    symptoms=(
        Symptom(
            "ValueError",
            r"Attempt to convert a value \(PerReplica",
            strategies=("multi_worker",),
            keras=(3,),
        ),
    ),
    prints="weight after one step: 0.375",
    exercise_prints="loss: 2.5",
    unavailable={
        "parameter_server": "its workers take their steps one by one, and a coordinator schedules them",
    },
)

# %% tags=["parameters"]
strategy = "multi_worker"
devices = 2
save_format = "keras"
keras = 3

# %% tags=["open"]
import strategy_clinic as clinic

session = clinic.open("fm78", strategy, devices, save_format, keras)

# %% [markdown]
# ## The program
#
# Two workers take one step with a batch of eight examples. Both raise. [FM41](fm41_multi_worker_start.ipynb) says how to start
# two workers yourself; started once, the program has one worker and ends.

# %% tags=["broken"]
# broken.py

# %% [markdown]
# ## The fix
#
# Write the loop yourself. Each worker takes the step with its part of each batch, and the optimizer adds up the gradients of all
# workers. This program also runs on one device and on several devices of one process, with both versions of Keras.

# %% tags=["fixed"]
# fixed.py

# %% [markdown]
# For your own model:
#
# - `errors` must have one number for each example. `tf.keras.losses.MSE(labels, outputs)` returns that for outputs with two
#   axes; take the mean over the other axes for more, such as those of images.
# - Add the losses of the layers, if there are any: `tf.nn.scale_regularization_loss(tf.add_n(model.losses))`.
# - Create metrics in the scope, and call `update_state` in the step. To print the loss, see
#   [FM39](fm39_per_replica_on_host.ipynb).
# - All workers must take the same number of steps ([FM59](fm59_worker_leaves_early.ipynb)), and all must save
#   ([FM47](fm47_chief_saves_alone.ipynb)).
#
# To keep `fit`, install `tf_keras` and set `TF_USE_LEGACY_KERAS=1` before the first import of TensorFlow: the same program trains
# then. Files of Keras 3 stay in Keras 3 ([FM45](fm45_keras2_file_in_keras3.ipynb)).
#
# ## Why
#
# Before its first step `fit` of Keras 3 reads a batch to build the model and its metrics, and calls `strategy.reduce` for the
# pair of inputs and labels: `_maybe_symbolic_build` in `keras/src/backend/tensorflow/trainer.py`. With several workers, that
# takes one value and no pair. This happens for a built model, too, and with `run_eagerly=True`. `train_on_batch` does not read a
# batch, and raises later: the loss of each worker is a number, and Keras reduces it along `axis=0`, which a number does not have.
#
# `predict` joins the outputs and works. The error is known as
# [keras#20585](https://github.com/keras-team/keras/issues/20585), open since 2024. TensorFlow's tutorial on multi-worker training
# with Keras was written for Keras 2. `upstream/fit_of_several_workers.md` has a repair, which was run on two workers.
#
# Under `ParameterServerStrategy` Keras 3 distributes the dataset as for replicas of one process, and a `ClusterCoordinator` has to
# hand it out. `fit` of Keras 2 trains there, with `dataset.repeat()` and `steps_per_epoch`. The step above trains there with both
# versions if the coordinator schedules it, as in
# [TensorFlow's tutorial](https://www.tensorflow.org/tutorials/distribute/parameter_server_training).

# %% tags=["figure"]
# The program above with other calls in place of `fit`, on two workers.
from strategy_clinic import figures

FIT = "model.fit(dataset, verbose=0)  # wrong: Keras 3 does not combine what the workers have"
CALLS = {
    "fit": "model.fit(dataset, verbose=0)",
    "fit, run_eagerly=True": 'model.compile(optimizer, "mse", run_eagerly=True)\nmodel.fit(dataset, verbose=0)',
    "evaluate": "model.evaluate(dataset, verbose=0)",
    "predict": "model.predict(dataset, verbose=0)",
    "train_on_batch": "model.train_on_batch(tf.ones((4, 1)), tf.zeros((4, 1)))",
}
workers = session.setup.but(strategy="multi_worker", devices=2)
BOTH = [workers.but(keras=3), workers.but(keras=2)]
printed = session.prints(session.variants("broken", FIT, CALLS), BOTH)
WORKS = {call: [words.startswith("weight") for words in row] for call, row in printed.items()}
figures.grid(WORKS, ["Keras 3", "Keras 2"], "works", "raises", "What runs on two workers?")

# %% tags=["tests"]
# The loop with an Embedding, Adam, a layer without a gradient and a penalty, saved and loaded: two workers are one device.
GENERAL = """import os

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()


def make_model():
    words = tf.keras.Input((2,), dtype="int32")
    table = tf.keras.layers.Embedding(5, 2, embeddings_initializer="ones")(words)
    hidden = tf.keras.layers.Flatten()(table)
    resting = Stop()(tf.keras.layers.Dense(1, kernel_initializer="ones")(hidden))
    last = tf.keras.layers.Dense(1, kernel_initializer="ones", kernel_regularizer="l2")
    return tf.keras.Model(words, tf.keras.layers.Add()([last(hidden), resting]))


class Stop(tf.keras.layers.Layer):
    def call(self, inputs):
        return tf.stop_gradient(inputs)


with strategy.scope():
    model = make_model()
    optimizer = tf.keras.optimizers.Adam(0.125)
    optimizer.build(model.trainable_variables)
    seen = tf.keras.metrics.Mean()
words = tf.constant([[0, 1], [2, 3], [4, 0], [0, 1]] * 2)
dataset = tf.data.Dataset.from_tensor_slices((words, tf.range(8.0)[:, None])).batch(4)


def step(inputs, labels):
    with tf.GradientTape() as tape:
        errors = tf.keras.losses.MSE(labels, model(inputs, training=True))
        loss = tf.nn.compute_average_loss(errors, global_batch_size=4)
        loss += tf.nn.scale_regularization_loss(tf.add_n(model.losses))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    seen.update_state(errors)


train = tf.function(strategy.run)
for _ in range(3):
    for batch in strategy.experimental_distribute_dataset(dataset):
        train(step, args=batch)
path = f"{os.getpid()}.weights.h5"
model.save_weights(path)
loaded = make_model()
loaded.load_weights(path)
print([round(float(tf.reduce_sum(weight)), 3) for weight in loaded.get_weights()], end=" ")
print(round(float(seen.result()), 3), int(optimizer.iterations.numpy()))
"""
three = workers.but(strategy="mirrored", devices=4)
alone = workers.but(strategy="default", devices=1)
for version in (3, 2):
    places = [each.but(keras=version) for each in (alone, workers, three)]
    (trained,) = session.prints({"general": GENERAL}, places).values()
    assert trained[0].endswith(" 6") and len(set(trained)) == 1, trained

# %% [markdown]
# ## Try other setups
#
# In one process `fit` works, on any number of devices. With Keras 2 both programs print the same on two workers.

# %% tags=["panel"]
session.panel()

# %% [markdown]
# ## Results
#
# Both programs on two workers with both versions of Keras, on two devices of one process, and without a strategy:

# %% tags=["table"]
two = workers.but(strategy="mirrored")
session.table([*BOTH, two, workers.but(strategy="default", devices=1)])

# %% [markdown]
# ## Exercise
#
# `evaluate` raises in the same way. Compute the mean squared error of all eight examples on two workers: it is `2.5`.

# %% tags=["exercise"]
# exercise.py

# %% tags=["solution"]
# solution.py

# %% [markdown]
# ## Read next
#
# - [FM41](fm41_multi_worker_start.ipynb): the line that creates the strategy raises.
# - [FM39](fm39_per_replica_on_host.ipynb): the same message from a line of your own loop.
# - [FM32](fm32_optimizer_built_in_replica.ipynb): why the optimizer is built before the first step.
# - [FM71](fm71_first_batch_of_fit.ipynb): the batch that `fit` reads, on several devices of one process.
