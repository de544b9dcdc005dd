"""Remaining life of bearings from vibration features, with censored examples weighted down.

    python run.py --epochs=6 --swa_from=2

The averaged weights (SWA) are what is reported. State: see STATE; an interrupted run goes on from it.
"""
import enum
import os

from absl import app
from absl import flags
from absl import logging
import keras
import numpy as np
import tensorflow as tf

FLAGS = flags.FLAGS
FEATURES = 9
STATE = ("model", "optimizer", "swa", "progress")

flags.DEFINE_integer("epochs", 6, "epochs")
flags.DEFINE_integer("batch", 24, "examples of a step on all devices")
flags.DEFINE_integer("swa_from", 2, "first epoch whose weights are averaged")
flags.DEFINE_float("rate", 0.02, "learning rate at the start")
flags.DEFINE_float("cool", 0.8, "factor for the rate when the error rises")
flags.DEFINE_string("dir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "state"), "checkpoints")


class Part(enum.Enum):
    TRAIN = 1
    HELD = 2


def bearings(part):
    rng = np.random.default_rng(50 + part.value)
    count = {Part.TRAIN: 168, Part.HELD: 72}[part]
    x = rng.normal(size=(count, FEATURES))
    life = 2.0 + x[:, 0] - 0.7 * x[:, 1] * x[:, 2] + 0.3 * rng.normal(size=count)
    censored = rng.random(count) < 0.4
    weight = np.where(censored, 0.15, 1.0)
    life = np.where(censored, life * rng.uniform(0.3, 1.0, count), life)
    return x.astype("float32"), life.astype("float32"), weight.astype("float32")


class Swa(tf.Module):
    """Running sum of the weights at the end of epochs."""

    def __init__(self, model):
        super().__init__()
        self.count = tf.Variable(0.0, trainable=False)
        self.sums = [tf.Variable(tf.zeros_like(w), trainable=False) for w in model.trainable_variables]

    def add(self, model):
        self.count.assign_add(1.0)
        for total, weight in zip(self.sums, model.trainable_variables):
            total.assign_add(weight)

    def put_into(self, model):
        for total, weight in zip(self.sums, model.trainable_variables):
            weight.assign(total / tf.maximum(self.count, 1.0))


class Progress(tf.Module):
    def __init__(self):
        super().__init__()
        self.epoch = tf.Variable(0, trainable=False, dtype=tf.int64)
        self.previous = tf.Variable(1e9, trainable=False)


class Job:
    def __init__(self, strategy):
        self.strategy = strategy
        with strategy.scope():
            self.model = keras.Sequential(
                [keras.Input((FEATURES,)), keras.layers.Dense(16, "tanh"), keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)]
            )
            self.optimizer = keras.optimizers.AdamW(FLAGS.rate, weight_decay=1e-3, epsilon=1e-5)
            self.optimizer.build(self.model.trainable_variables)
            self.swa = Swa(self.model)
        self.progress = Progress()
        self.checkpoint = tf.train.Checkpoint(**{name: getattr(self, name) for name in STATE})
        self.last_error = None

    def feed(self, part, epoch=None):
        columns = bearings(part)
        if epoch is not None:
            order = np.random.default_rng(7 * epoch + 1).permutation(len(columns[0]))
            columns = tuple(c[order] for c in columns)
        data = tf.data.Dataset.from_tensor_slices(columns).batch(FLAGS.batch, drop_remainder=True)
        return self.strategy.experimental_distribute_dataset(data)

    def weighted(self, life, guess, weight):
        """This replica's part of the weighted mean over the global batch."""
        total = tf.reduce_sum(weight)
        total = tf.distribute.get_replica_context().all_reduce("SUM", total)
        return tf.reduce_sum(weight * tf.square(life - guess)) / total

    def _train(self, x, life, weight):
        with tf.GradientTape() as tape:
            loss = self.weighted(life, self.model(x, training=True)[:, 0], weight)
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    def _judge(self, x, life, weight):
        return self.weighted(life, self.model(x, training=False)[:, 0], weight)

    @tf.function
    def step(self, batch, train):
        parts = self.strategy.run(self._train if train else self._judge, args=batch)
        error = self.strategy.reduce(tf.distribute.ReduceOp.SUM, parts, axis=None)
        return error

    def mean(self, feed, train):
        errors = [self.step(batch, train) for batch in feed]
        self.last_error = errors[-1]
        return float(np.mean([e.numpy() for e in errors]))


def main(_):
    keras.utils.set_random_seed(2)
    job = Job(tf.distribute.MirroredStrategy())
    manager = tf.train.CheckpointManager(job.checkpoint, FLAGS.dir, max_to_keep=1)
    if manager.latest_checkpoint:
        job.checkpoint.restore(manager.latest_checkpoint).assert_existing_objects_matched()
        logging.info("restored %s", manager.latest_checkpoint)

    for epoch in range(int(job.progress.epoch.numpy()), FLAGS.epochs):
        train = job.mean(job.feed(Part.TRAIN, epoch), True)
        held = job.mean(job.feed(Part.HELD), False)
        if held > float(job.progress.previous.numpy()) - 0.3:
            job.optimizer.learning_rate.assign(FLAGS.cool * job.optimizer.learning_rate)
        job.progress.previous.assign(held)
        if epoch >= FLAGS.swa_from:
            job.swa.add(job.model)
        job.progress.epoch.assign(epoch + 1)
        manager.save()
        print(f"epoch {epoch}: train {train:.5f} held {held:.5f} last step {float(job.last_error):.5f}")

    plain = job.mean(job.feed(Part.HELD), False)
    size = sum(float(tf.reduce_sum(tf.abs(w))) for w in job.model.trainable_variables)
    job.swa.put_into(job.model)
    averaged = job.mean(job.feed(Part.HELD), False)
    print(f"final: plain {plain:.6f} averaged {averaged:.6f} weights {size:.6f}")


if __name__ == "__main__":
    app.run(main)
