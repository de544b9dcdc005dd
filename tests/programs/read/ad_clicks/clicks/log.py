"""The log of an ad server, hour by hour. A real one is read from a queue; here it is drawn."""
import numpy as np
import tensorflow as tf

SITES, ADS = 30, 40

SIGNATURE = (
    {"site": tf.TensorSpec((None,), tf.int32), "ad": tf.TensorSpec((None,), tf.int32),
     "context": tf.TensorSpec((None, 4), tf.float32)},
    tf.TensorSpec((None,), tf.float32),
)


def hours(count, batch, first=0):
    """Yields one batch for each hour."""
    taste = np.random.default_rng(0).normal(0, 1, (SITES, ADS))
    for hour in range(first, first + count):
        rng = np.random.default_rng([1, hour])
        site, ad = rng.zipf(1.4, (2, batch))
        site, ad = np.minimum(site, SITES) - 1, np.minimum(ad, ADS) - 1
        context = rng.normal(0, 1, (batch, 4)) * [1, 1, 1, 4]
        score = taste[site, ad] + context @ [0.8, -0.5, 0.0, 0.1] - 0.5
        clicks = rng.random(batch) < 1 / (1 + np.exp(-score))
        yield ({"site": np.int32(site), "ad": np.int32(ad), "context": np.float32(context)},
               np.float32(clicks))


def dataset(count, batch, first=0):
    return tf.data.Dataset.from_generator(lambda: hours(count, batch, first), output_signature=SIGNATURE)
