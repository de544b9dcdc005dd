import numpy as np
import tensorflow as tf
from turbine import CHANNELS, STEPS


def sequences(count, seed):
    """Recordings in the order of the turbines' numbers: each has a level of its own."""
    rng = np.random.default_rng(seed)
    level = np.sort(rng.normal(0, 0.6, (count, 1, 1)), axis=0)
    faulty = rng.random(count) < 0.4
    time = np.arange(STEPS)[None, :, None]
    phase = rng.uniform(0, 6, (count, 1, CHANNELS))
    wave = np.sin(0.7 * time + phase) + faulty[:, None, None] * 1.2 * np.sin(2.1 * time + phase)
    noise = rng.normal(0, 0.4, (count, STEPS, CHANNELS))
    return np.float32(level + wave * [1.0, 0.6, 0.3] + noise), np.float32(faulty)[:, None]


def batches(recordings, faulty, size, epoch=None):
    # whole groups of neighbours stay together, since they are read from one file
    groups = np.arange(len(recordings)).reshape(-1, size)
    if epoch is not None:
        groups = np.random.default_rng(epoch).permutation(groups)
    order = groups.ravel()
    return tf.data.Dataset.from_tensor_slices((recordings[order], faulty[order])).batch(size, drop_remainder=True)
