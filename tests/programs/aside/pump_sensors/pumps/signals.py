import numpy as np
import tensorflow as tf

CHANNELS, TIMES = 4, 10


def pumps(count, seed, worn=0.0):
    """Four channels of a pump; a worn one trembles."""
    rng = np.random.default_rng(seed)
    t = np.arange(TIMES)[None, :, None]
    speed, phase = rng.uniform(0.4, 0.9, (count, 1, 1)), rng.uniform(0, 6, (count, 1, 1))
    rows = np.sin(speed * t + phase + np.arange(CHANNELS)) * rng.uniform(0.5, 1.5, (count, 1, 1))
    rows += worn * np.sin(2.6 * t + phase) + 0.05 * rng.normal(size=rows.shape)
    return np.float32(rows)


def global_batches(rows, size, seed, epoch):
    order = np.random.default_rng((seed, epoch)).permutation(len(rows))
    return tf.data.Dataset.from_tensor_slices(rows[order]).batch(size)
