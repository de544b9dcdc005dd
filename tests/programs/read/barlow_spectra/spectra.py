import numpy as np
import tensorflow as tf

BANDS = 48


def minerals(count, seed, kinds=5):
    """Spectra of `kinds` minerals in the order in which they were measured: one mineral after the other."""
    lines = np.random.default_rng(0).uniform(4, BANDS - 4, (kinds, 3))
    rng = np.random.default_rng(seed)
    kind = np.sort(rng.integers(0, kinds, count))
    band = np.arange(BANDS)
    depth = rng.uniform(0.5, 1.0, (count, 3, 1))
    dips = depth * np.exp(-((band - lines[kind][..., None]) ** 2) / 5)
    slope = rng.normal(0, 0.5, (count, 1)) * (band / BANDS - 0.5)
    return np.float32(1 - dips.sum(1) + slope + rng.normal(0, 0.04, (count, BANDS))), kind


def two_views(spectrum, seed):
    """Two views of one spectrum; the seed belongs to the spectrum and the epoch."""
    def view(seed):
        first, second, third = tf.unstack(tf.random.experimental.stateless_split(seed, 3))
        light = tf.random.stateless_uniform((), first, 0.7, 1.3)
        tilt = tf.random.stateless_normal((), second) * tf.linspace(-0.3, 0.3, BANDS)
        return spectrum * light + tilt + 0.05 * tf.random.stateless_normal((BANDS,), third)

    return view(seed), view(seed + 1000)


def views(spectra, epoch, batch):
    # neighbours are of one mineral, so a batch takes one from each stretch
    order = np.arange(len(spectra)).reshape(batch, -1).T.ravel()
    data = tf.data.Dataset.from_tensor_slices((spectra[order], order))
    data = data.map(lambda spectrum, n: two_views(spectrum, tf.stack([n, epoch])), num_parallel_calls=2)
    return data.batch(batch)
