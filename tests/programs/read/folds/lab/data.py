import numpy as np
import tensorflow as tf


def make_table(config):
    rng = np.random.default_rng(config.seed)
    x = rng.normal(size=(config.examples, config.columns)).astype("float32")
    y = (x[:, 0] * x[:, 1] + 0.5 * x[:, 2] + rng.normal(0, 0.3, config.examples) > 0).astype("float32")
    return x, y[:, None]


def folds(config):
    order = np.random.default_rng(config.seed).permutation(config.examples)
    return np.array_split(order, config.folds)


def dataset(arrays, chosen, config, epoch=None):
    x, y = arrays
    data = tf.data.Dataset.from_tensor_slices((x[chosen], y[chosen]))
    if epoch is not None:
        data = data.shuffle(len(chosen), seed=epoch)
    return data.batch(config.batch)
