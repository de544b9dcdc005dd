"""Sensor curves of four classes. Labels are known for a few of them only."""
import numpy as np
import tensorflow as tf

LENGTH, CLASSES = 24, 4


def curves(rows, seed):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, CLASSES, rows)
    time = np.linspace(0, 1, LENGTH)
    phase = rng.uniform(0, 2 * np.pi, (rows, 1))
    x = np.sin(2 * np.pi * (label[:, None] + 1) * time + phase)
    return np.float32(x + 0.3 * rng.normal(size=x.shape)), np.int32(label)


def two_views(x, seed):
    """Scaled, shifted in time and noisy: two versions of each curve."""
    rng = np.random.default_rng(seed)

    def view():
        scale = rng.uniform(0.7, 1.3, (len(x), 1))
        shifts = rng.integers(-3, 4, len(x))
        moved = np.stack([np.roll(row, shift) for row, shift in zip(x, shifts)])
        return np.float32(scale * moved + 0.1 * rng.normal(size=x.shape))

    return view(), view()


def pairs(x, batch, epoch):
    order = np.random.default_rng(epoch).permutation(len(x))
    data = tf.data.Dataset.from_tensor_slices(two_views(x[order], 1000 + epoch))
    return data.batch(batch, drop_remainder=True)


def labelled(rows, batch, seed):
    return tf.data.Dataset.from_tensor_slices(curves(rows, seed)).batch(batch)
