"""Made-up stations: weather of the last days, and the moisture of the soil in three depths."""
import numpy as np
import tensorflow as tf

WEATHER, DEPTHS = 9, 3


def stations(count, seed):
    rng = np.random.default_rng(seed)
    weather = np.float32(rng.normal(size=(count, WEATHER)))
    mix = np.random.default_rng(99).normal(size=(WEATHER, DEPTHS)) / 3
    moisture = 1 / (1 + np.exp(-weather @ mix - 0.3 * weather[:, :1] * weather[:, 1:2]))
    return weather, np.float32(moisture + 0.02 * rng.normal(size=moisture.shape))


def epoch_of_training(table, batch, seed, epoch):
    """The order of an epoch depends on its number alone."""
    order = np.random.default_rng([seed, epoch]).permutation(len(table[0]))
    data = tf.data.Dataset.from_tensor_slices(tuple(column[order] for column in table))
    return data.batch(batch, drop_remainder=True)


def in_order(table, batch):
    return tf.data.Dataset.from_tensor_slices(table).batch(batch)
