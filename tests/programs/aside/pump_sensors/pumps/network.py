import keras
import tensorflow as tf

from pumps.signals import CHANNELS, TIMES


class Autoencoder(keras.Model):
    def __init__(self, sizes=(24, 12, 4)):
        super().__init__()
        seeds = iter(range(1, 10))
        dense = lambda size, activation=None: keras.layers.Dense(  # noqa: E731
            size, activation, kernel_initializer=keras.initializers.GlorotUniform(seed=next(seeds)))
        down = [dense(size, "tanh") for size in sizes]
        up = [dense(size, "tanh") for size in reversed(sizes[:-1])]
        self.layers_between = tuple(down + up)
        self.last = dense(CHANNELS * TIMES)

    def call(self, rows):
        x = tf.reshape(rows, (-1, CHANNELS * TIMES))
        for layer in self.layers_between:
            x = layer(x)
        return tf.reshape(self.last(x), (-1, TIMES, CHANNELS))
