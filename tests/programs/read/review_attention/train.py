"""Sentiment of shop reviews with attention pooling.

The state of a run (weights, optimizer, epoch, patience) is a tf.train.Checkpoint that a callback of `fit`
writes after each epoch. Start the program again after an interruption.
"""
import dataclasses
import functools
import os

from absl import app, flags
import keras
import numpy as np
import tensorflow as tf

flags.DEFINE_integer("epochs", 6, "How many epochs in all.")
flags.DEFINE_float("rate", 0.5, "Learning rate of the first epoch.")
flags.DEFINE_string("run_dir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "run"), "State of the run.")
FLAGS = flags.FLAGS


@dataclasses.dataclass(frozen=True)
class Shape:
    vocab: int = 120
    words: int = 16
    dim: int = 12
    batch: int = 24
    reviews: int = 144
    held: int = 72


def reviews(shape, count, seed):
    rng = np.random.default_rng(seed)
    text = rng.integers(20, shape.vocab, (count, shape.words))
    mood = rng.integers(0, 2, count)
    for i in range(count):
        text[i, rng.integers(0, shape.words, 2)] = rng.integers(0, 10, 2) + 10 * mood[i]
    mood = np.where(rng.random(count) < 0.15, 1 - mood, mood)
    return text.astype("int32"), mood.astype("float32")[:, None]


class AttentionPool(keras.layers.Layer):
    """Weighted mean of the words; flat attention is penalised a little."""

    def __init__(self, units, penalty=0.02, **kwargs):
        super().__init__(**kwargs)
        self.units, self.penalty = units, penalty

    def build(self, shape):
        self.key = self.add_weight(name="key", shape=(shape[-1], self.units), initializer="glorot_uniform")
        self.query = self.add_weight(name="query", shape=(self.units,), initializer="ones")
        self.built = True

    def call(self, words):
        score = tf.linalg.matvec(tf.tanh(tf.matmul(words, self.key)), self.query)
        weight = tf.nn.softmax(score, axis=-1)
        entropy = -tf.reduce_sum(weight * tf.math.log(weight + 1e-9), axis=-1)
        self.add_loss(self.penalty * tf.reduce_mean(entropy))
        return tf.reduce_sum(words * weight[..., None], axis=1)


class ReviewModel(keras.Model):
    def __init__(self, shape):
        super().__init__(name="reviews")
        self.embed = keras.layers.Embedding(shape.vocab, shape.dim)
        self.pool = AttentionPool(8)
        self.head = keras.layers.Dense(1)

    def call(self, text):
        return self.head(self.pool(self.embed(text)))

    def train_step(self, data):
        text, mood = data
        with tf.GradientTape() as tape:
            logit = self(text, training=True)
            loss = self.compute_loss(text, mood, logit)
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_weights), self.trainable_weights))
        return self.compute_metrics(text, mood, logit)

    def test_step(self, data):
        text, mood = data
        return self.compute_metrics(text, mood, self(text, training=False))


class Keeper(keras.callbacks.Callback):
    """Epoch counter, patience and the checkpoint around them."""

    def __init__(self, model, folder, patience=1):
        super().__init__()
        self.patience = patience
        self.epoch = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.best = tf.Variable(np.inf, dtype=tf.float32, trainable=False)
        self.wait = tf.Variable(0, dtype=tf.int64, trainable=False)
        checkpoint = tf.train.Checkpoint(net=model, opt=model.optimizer, epoch=self.epoch, best=self.best, wait=self.wait)
        self.manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
        checkpoint.restore(self.manager.latest_checkpoint)

    def on_epoch_end(self, epoch, logs):
        value = logs["val_log_loss"]
        better = value < float(self.best.numpy()) - 0.1
        if better:
            self.best.assign(value)
        self.wait.assign(0 if better else self.wait + 1)
        if int(self.wait.numpy()) > self.patience:
            rate = self.model.optimizer.learning_rate
            rate.assign(0.3 * rate)
            self.wait.assign(0)
        self.epoch.assign(epoch + 1)
        self.manager.save()
        print(f"epoch {epoch} nll {logs['log_loss']:.5f} held {value:.5f} acc {logs['val_accuracy']:.4f}")


def ordered(shape, text, mood, first, epochs):
    """The batches of the epochs from `first` on, each epoch permuted with its own seed."""
    order = [np.random.default_rng(300 + e).permutation(len(text)) for e in range(first, epochs)]
    order = np.concatenate(order) if order else np.zeros(0, "int64")
    return tf.data.Dataset.from_tensor_slices((text[order], mood[order])).batch(shape.batch, drop_remainder=True)


def main(argv):
    del argv
    shape = Shape()
    keras.utils.set_random_seed(12)
    held = tf.data.Dataset.from_tensor_slices(reviews(shape, shape.held, 2)).batch(shape.batch)
    bce = functools.partial(keras.losses.BinaryCrossentropy, from_logits=True)

    with tf.distribute.MirroredStrategy().scope():
        model = ReviewModel(shape)
        model.compile(
            optimizer=keras.optimizers.SGD(FLAGS.rate, momentum=0.9),
            loss=bce(),
            metrics=[keras.metrics.BinaryCrossentropy(from_logits=True, name="log_loss"), keras.metrics.BinaryAccuracy(threshold=0.0, name="accuracy")],
        )
        model(tf.zeros((1, shape.words), tf.int32))
        model.optimizer.build(model.trainable_variables)
        keeper = Keeper(model, FLAGS.run_dir)

    first = int(keeper.epoch.numpy())
    train = ordered(shape, *reviews(shape, shape.reviews, 1), first, FLAGS.epochs)
    model.fit(
        train, steps_per_epoch=shape.reviews // shape.batch, initial_epoch=first, epochs=FLAGS.epochs,
        validation_data=held, callbacks=[keeper], verbose=0,
    )
    result = model.evaluate(held, return_dict=True, verbose=0)
    size = sum(float(np.abs(w).sum()) for w in model.get_weights())
    print(f"final: nll {result['log_loss']:.6f} best {float(keeper.best.numpy()):.6f} weights {size:.6f}")


if __name__ == "__main__":
    app.run(main)
