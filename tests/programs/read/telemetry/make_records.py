"""Writes drives of a fleet as TFRecord shards: a few numbers for each second, and the wear that the workshop found."""
from pathlib import Path

import numpy as np
import tensorflow as tf

SIGNALS = 4


def drive(rng):
    length = int(rng.integers(5, 30))
    signals = np.cumsum(rng.normal(0, 0.4, (length, SIGNALS)), axis=0).astype("float32")
    strain = np.tanh(signals[:, 0]) * signals[:, 1] + 0.6 * np.abs(signals[:, 2])
    wear = np.float32(np.convolve(strain, [0.5, 0.3, 0.2])[:length])
    return signals, wear


def example(signals, wear):
    floats = lambda values: tf.train.Feature(float_list=tf.train.FloatList(value=values))  # noqa: E731
    return tf.train.Example(features=tf.train.Features(feature={
        "signals": floats(signals.ravel()), "wear": floats(wear)})).SerializeToString()


def write(folder, name, drives, shards, seed):
    rng = np.random.default_rng(seed)
    Path(folder).mkdir(parents=True, exist_ok=True)
    paths = [str(Path(folder) / f"{name}-{shard:02d}.tfrecord") for shard in range(shards)]
    for path in paths:
        with tf.io.TFRecordWriter(path) as writer:
            for _ in range(drives // shards):
                writer.write(example(*drive(rng)))
    return paths
