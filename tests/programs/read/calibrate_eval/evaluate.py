"""Evaluates a released classifier on a held-out set: accuracy, log-loss, calibration and the confusion matrix.

The release (random features with a readout by least squares) is written to release.npz if it is not there.

    python evaluate.py --samples 210 --batch 32
"""
import argparse
import collections
import os

import numpy as np
import tensorflow as tf
import keras

PLACE = os.path.dirname(os.path.abspath(__file__))
RELEASE = os.path.join(PLACE, "release.npz")
INPUTS, FEATURES, CLASSES, BINS = 6, 40, 4, 8

Report = collections.namedtuple("Report", "seen accuracy logloss ece per_class confusion")


def blobs(count, seed):
    """Four overlapping bent clouds; rare classes come last, as in the archive that the real samples come from."""
    centres = np.random.default_rng(1).normal(0, 1.1, (CLASSES, INPUTS))
    rng = np.random.default_rng(seed)
    label = np.sort(rng.choice(CLASSES, count, p=[0.4, 0.3, 0.2, 0.1]))
    x = centres[label] + rng.normal(0, 1.0, (count, INPUTS))
    x[:, 1] += 0.4 * x[:, 0] ** 2
    return x.astype("float32"), label.astype("int64")


def write_release():
    x, label = blobs(500, 2)
    rng = np.random.default_rng(3)
    kernel = rng.normal(0, 0.5, (INPUTS, FEATURES)).astype("float32")
    bias = rng.uniform(-1, 1, FEATURES).astype("float32")
    hidden = np.c_[np.tanh(x @ kernel + bias), np.ones(len(x))]
    target = 6.0 * np.eye(CLASSES)[label] - 1.0
    readout = np.linalg.lstsq(hidden.T @ hidden + 2.0 * np.eye(FEATURES + 1), hidden.T @ target, rcond=None)[0]
    np.savez(RELEASE, kernel=kernel, bias=bias, readout=readout[:-1], offset=readout[-1])


def load_classifier():
    model = keras.Sequential([
        keras.Input((INPUTS,)),
        keras.layers.Dense(FEATURES, activation="tanh", name="features"),
        keras.layers.Dense(CLASSES, name="readout"),
    ])
    with np.load(RELEASE) as release:
        model.get_layer("features").set_weights([release["kernel"], release["bias"]])
        model.get_layer("readout").set_weights([release["readout"], release["offset"]])
    return model


class Evaluator:
    """Sums over the samples on the devices; all divisions are made once, at the end."""

    def __init__(self, strategy, batch):
        self.strategy, self.batch = strategy, batch
        with strategy.scope():
            self.model = load_classifier()
        self.step = tf.function(self._step)

    def batches(self, x, label):
        data = tf.data.Dataset.from_tensor_slices((x, label)).batch(self.batch)
        return self.strategy.experimental_distribute_dataset(data)

    def device_sums(self, x, label):
        p = tf.nn.softmax(self.model(x, training=False))
        guess = tf.argmax(p, axis=-1)
        hit = tf.cast(guess == label, tf.float32)
        sure = tf.reduce_max(p, axis=-1)
        where = tf.minimum(tf.cast(sure * BINS, tf.int32), BINS - 1)
        in_bin = tf.one_hot(where, BINS)
        return {
            "seen": tf.cast(tf.size(label), tf.float32),
            "hits": tf.reduce_sum(hit),
            "logloss": -tf.reduce_sum(tf.math.log(tf.gather(p, label, batch_dims=1) + 1e-9)),
            "bin_seen": tf.reduce_sum(in_bin, axis=0),
            "bin_sure": tf.linalg.matvec(in_bin, sure, transpose_a=True),
            "bin_hits": tf.linalg.matvec(in_bin, hit, transpose_a=True),
            "confusion": tf.math.confusion_matrix(label, guess, CLASSES, dtype=tf.float32),
        }

    def _step(self, x, label):
        sums = self.strategy.run(self.device_sums, args=(x, label))
        return {name: self.strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None) for name, value in sums.items()}

    def evaluate(self, x, label):
        total = collections.defaultdict(float)
        for i, batch in enumerate(self.batches(x, label)):
            for name, value in self.step(*batch).items():
                total[name] = total[name] + value.numpy()
            print(f"batch {i}: {total['hits'] / total['seen']:.4f} of {int(total['seen'])} right")
        return self.report(total)

    def report(self, total):
        seen, bins = total["seen"], np.maximum(total["bin_seen"], 1)
        gap = np.abs(total["bin_sure"] - total["bin_hits"]) / bins
        confusion = total["confusion"]
        per_class = np.diag(confusion) / np.maximum(confusion.sum(1), 1)
        return Report(seen, total["hits"] / seen, total["logloss"] / seen, float((gap * total["bin_seen"]).sum() / seen), per_class, confusion)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=210)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args()
    if not os.path.exists(RELEASE):
        write_release()
    evaluator = Evaluator(tf.distribute.MirroredStrategy(), args.batch)
    report = evaluator.evaluate(*blobs(args.samples, 9))
    print(report.confusion.astype(int))
    print(f"seen {report.seen:.1f} accuracy {report.accuracy:.6f} logloss {report.logloss:.6f} ece {report.ece:.6f} balanced {report.per_class.mean():.6f}")


if __name__ == "__main__":
    main()
