"""Readings of a rock drill, and how fast it gets on."""
import numpy as np
import tensorflow as tf

READINGS = 8


def readings(count, seed, quarry):
    """Another quarry has harder rock: the same machine, another relation."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, READINGS))
    hard = {"limestone": 0.3, "granite": 1.1}[quarry]
    speed = np.tanh(x[:, 0] - hard * x[:, 1]) + 0.5 * np.sin(2 * x[:, 2]) - hard * 0.4 * x[:, 3] * x[:, 4]
    return x.astype("float32"), (speed + 0.1 * rng.normal(size=count)).astype("float32")


def shifts(data, batch, epoch):
    """The readings of an epoch, in its own order."""
    x, y = data
    order = np.random.default_rng([33, epoch]).permutation(len(x))
    return tf.data.Dataset.from_tensor_slices((x[order], y[order])).batch(batch, drop_remainder=True)
