import numpy as np
import tensorflow as tf


def clips(settings, count, seed):
    """Energies in a few bands: each word is a sweep from one band to another, in noise."""
    rng = np.random.default_rng(seed)
    word = np.sort(rng.integers(0, settings.words, count))
    time = np.linspace(0, 1, settings.frames)[None, :, None]
    start, end = np.array([0, 5, 2, 4])[word, None, None], np.array([5, 0, 4, 2])[word, None, None]
    band = np.arange(settings.bands)[None, None]
    energy = np.exp(-np.square(band - (1 - time) * start - time * end))
    gain = 1.0 + word[:, None, None] / 2
    return np.float32(gain * energy + 0.4 * rng.normal(size=energy.shape)), word.astype("int32")


def epoch_of(settings, number):
    data = tf.data.Dataset.from_tensor_slices(clips(settings, settings.clips, 1))
    if number % 2:
        data = data.shuffle(settings.clips, seed=number)
    return data.batch(settings.batch, drop_remainder=True).prefetch(1)
