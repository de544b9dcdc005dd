"""Curves of two kinds, in 32 points, each with the noise of every epoch that the model needs."""
import numpy as np
import tensorflow as tf

POINTS, LATENT, BATCH = 32, 4, 32


def curves(count, seed):
    rng = np.random.default_rng(seed)
    place = np.linspace(0, 2 * np.pi, POINTS)
    phase, speed = rng.uniform(0, 3, (count, 1)), rng.choice([1.0, 2.0], (count, 1))
    return (np.sin(speed * place + phase) + rng.normal(0, 0.05, (count, POINTS))).astype("float32")


def with_noise(values, seed):
    def add(number, value):
        return value, tf.random.stateless_normal((LATENT,), seed=[seed, tf.cast(number, tf.int32)])

    dataset = tf.data.Dataset.from_tensor_slices(values).enumerate().map(add)
    return dataset.batch(BATCH, drop_remainder=True)
