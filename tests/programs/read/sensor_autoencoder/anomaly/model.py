import keras
import tensorflow as tf


class Stack(keras.layers.Layer):
    """Dense layers one after the other; the last one is linear."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.dense = [keras.layers.Dense(u, activation="tanh") for u in units[:-1]]
        self.dense.append(keras.layers.Dense(units[-1]))

    def call(self, inputs):
        for layer in self.dense:
            inputs = layer(inputs)
        return inputs


class AutoEncoder(keras.Model):

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.encoder = Stack([config.hidden, config.latent], name="encoder")
        self.decoder = Stack([config.hidden, config.channels], name="decoder")

    def call(self, inputs):
        return self.decoder(self.encoder(inputs))

    def codes(self, inputs):
        return self.encoder(inputs)


def squared_errors(rows, rebuilt):
    """One number for each row."""
    return tf.reduce_sum(tf.math.squared_difference(rows, rebuilt), axis=-1)
