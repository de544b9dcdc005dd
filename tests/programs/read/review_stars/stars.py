"""Number of stars of short product reviews.

python stars.py --epochs=6 ; goes on from the backup in --folder if it was stopped.
"""
import os

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

flags.DEFINE_integer("epochs", 6, "Number of epochs.")
flags.DEFINE_integer("batch", 32, "Reviews in a step.")
flags.DEFINE_float("rate", 0.35, "Learning rate of the first epochs.")
flags.DEFINE_float("spread", 0.02, "Weight of the penalty on the summary vectors.")
flags.DEFINE_string("folder", os.path.join(os.path.dirname(os.path.abspath(__file__)), "backup"), "State.")
FLAGS = flags.FLAGS

VOCAB, LENGTH, STARS = 90, 12, 5
RAMP_STEPS = 24


def reviews(count, seed):
    rng = np.random.default_rng(seed)
    stars = rng.integers(0, STARS, count)
    mood = rng.integers(1, VOCAB, (count, LENGTH))
    told = 1 + stars[:, None] * 17 + rng.integers(0, 20, (count, LENGTH))
    words = np.where(rng.random((count, LENGTH)) < 0.3, told, mood)
    noisy = np.where(rng.random(count) < 0.25, rng.integers(0, STARS, count), stars)
    return words.astype(np.int32), noisy.astype(np.int32)


def dataset(part):
    return tf.data.Dataset.from_tensor_slices(part).batch(FLAGS.batch, drop_remainder=True)


class StarModel(keras.Model):
    """GRU over the words; the penalty on its summary grows during the first steps."""

    def __init__(self, spread, **kwargs):
        super().__init__(**kwargs)
        self.spread = spread
        self.embed = keras.layers.Embedding(VOCAB, 16)
        self.read = keras.layers.GRU(20)
        self.head = keras.layers.Dense(STARS)
        # progress that belongs to the model and travels with its weights
        self.ramp = self.add_weight(shape=(), initializer="zeros", trainable=False, name="ramp")
        self.best_score = self.add_weight(shape=(), initializer="zeros", trainable=False, name="best_score")

    def call(self, words):
        summary = self.read(self.embed(words))
        self.add_loss(self.spread * self.ramp * tf.reduce_mean(tf.reduce_sum(summary ** 2, -1)))
        return self.head(summary)


class Ramp(keras.callbacks.Callback):
    """Raises the weight of the penalty after each step."""

    def on_train_batch_end(self, batch, logs=None):
        self.model.ramp.assign(min(1.0, float(self.model.ramp.numpy()) + 1.0 / RAMP_STEPS))


class KeepBest(keras.callbacks.Callback):
    """Keeps the weights with the highest accuracy on the held-out reviews in a file."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def on_epoch_end(self, epoch, logs=None):
        if logs["val_accuracy"] > float(self.model.best_score.numpy()):
            self.model.best_score.assign(logs["val_accuracy"])
            self.model.save_weights(self.path, overwrite=True)


class Report(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch + 1}: loss {logs['loss']:.4f} val_loss {logs['val_loss']:.4f} "
              f"val_accuracy {logs['val_accuracy']:.4f}", flush=True)


def rate_of(epoch, rate):
    return FLAGS.rate if epoch < 3 else 0.5 * FLAGS.rate


def main(argv):
    del argv
    keras.utils.set_random_seed(33)
    os.makedirs(FLAGS.folder, exist_ok=True)
    best_path = os.path.join(FLAGS.folder, "best.weights.h5")
    train, held_out = reviews(192, seed=4), reviews(256, seed=5)

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = StarModel(FLAGS.spread)
        model.compile(
            optimizer=keras.optimizers.SGD(FLAGS.rate, momentum=0.9),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
        model(train[0][:1])
        model.optimizer.build(model.trainable_variables)

    model.fit(
        dataset(train).repeat(),
        epochs=FLAGS.epochs,
        steps_per_epoch=len(train[0]) // FLAGS.batch,
        validation_data=dataset(held_out),
        verbose=0,
        callbacks=[
            keras.callbacks.LearningRateScheduler(rate_of),
            Ramp(),
            Report(),
            KeepBest(best_path),
            keras.callbacks.BackupAndRestore(os.path.join(FLAGS.folder, "last"), delete_checkpoint=False),
        ],
    )
    last, ramp = sum(v.numpy().sum() for v in model.trainable_variables), float(model.ramp.numpy())
    model.load_weights(best_path)
    best = model.evaluate(dataset(held_out), verbose=0, return_dict=True)
    print(f"final: best loss {best['loss']:.5f} accuracy {best['accuracy']:.5f} "
          f"last ramp {ramp:.5f} sum of weights {last:.5f}")


if __name__ == "__main__":
    app.run(main)
