"""Evaluates the released scorer: loss, F1 and calibration, over all devices of the machine."""
import os

import numpy as np
import tensorflow as tf
from absl import app, flags, logging

from messages import LENGTH, messages
from scorer import Scorer

HERE = os.path.dirname(os.path.abspath(__file__))
FLAGS = flags.FLAGS
flags.DEFINE_string("released", os.path.join(HERE, "released"), "folder of the checkpoint")
flags.DEFINE_integer("batch", 20, "messages in one batch over all devices")
flags.DEFINE_integer("messages", 121, "size of the test set")
flags.DEFINE_float("threshold", 0.4, "probability from which on a message counts as a complaint")
flags.DEFINE_integer("bins", 5, "bins of the calibration")


def load(strategy):
    with strategy.scope():
        model = Scorer()
        model(np.zeros((1, LENGTH), "int32"))
        path = tf.train.latest_checkpoint(FLAGS.released)
        tf.train.Checkpoint(model=model).restore(path).expect_partial()
    logging.info("evaluates %s", os.path.basename(path))
    return model


class Tally:
    """Sums over everything that was seen. ``measure`` runs in each replica and returns sums only."""

    def __init__(self, strategy, model):
        self.strategy, self.model = strategy, model
        self.sums = None

    def measure(self, words, labels):
        logits = self.model(words, training=False)
        chances = tf.sigmoid(logits)
        errors = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
        said = tf.cast(chances > FLAGS.threshold, tf.float32)
        bins = tf.one_hot(tf.cast(chances * FLAGS.bins, tf.int32), FLAGS.bins)
        return {
            "count": tf.cast(tf.size(labels), tf.float32),
            "loss": tf.reduce_sum(errors),
            "hits": tf.reduce_sum(said * labels),
            "said": tf.reduce_sum(said),
            "true": tf.reduce_sum(labels),
            "bin_chance": tf.reduce_sum(bins * chances[:, None], axis=0),
            "bin_label": tf.reduce_sum(bins * labels[:, None], axis=0),
        }

    @tf.function
    def step(self, words, labels):
        parts = self.strategy.run(self.measure, args=(words, labels))
        return {name: self.strategy.reduce("SUM", part, axis=None) for name, part in parts.items()}

    def add(self, words, labels):
        new = {name: value.numpy() for name, value in self.step(words, labels).items()}
        self.sums = new if self.sums is None else {name: self.sums[name] + new[name] for name in new}

    def results(self):
        sums = self.sums
        return {
            "loss": sums["loss"] / sums["count"],
            "f1": 2.0 * sums["hits"] / (sums["said"] + sums["true"]),
            "calibration": np.abs(sums["bin_chance"] - sums["bin_label"]).sum() / sums["count"],
        }


def test_batches(strategy):
    data = tf.data.Dataset.from_tensor_slices(messages(FLAGS.messages, seed=31)).batch(FLAGS.batch)
    return strategy.experimental_distribute_dataset(data)


def main(_):
    strategy = tf.distribute.MirroredStrategy()
    tally = Tally(strategy, load(strategy))
    for number, (words, labels) in enumerate(test_batches(strategy)):
        tally.add(words, labels)
        if number % 3 == 0:
            print(f"batch {number}: loss so far {tally.results()['loss']:.5f}")
    results = tally.results()
    print(f"complaints {tally.sums['true']:.0f} of {tally.sums['count']:.0f}")
    print("test set of %.1f messages: " % tally.sums["count"] + " ".join(f"{name} {value:.6f}" for name, value in results.items()))


if __name__ == "__main__":
    app.run(main)
