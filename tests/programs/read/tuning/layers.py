import tensorflow as tf
from tensorflow import keras


@keras.utils.register_keras_serializable("tuning")
class GatedDense(keras.layers.Layer):
    """A dense layer that a gate of its own damps, by `strength` at most."""

    def __init__(self, units, strength=0.5, **kwargs):
        super().__init__(**kwargs)
        self.units, self.strength = units, strength

    def build(self, shape):
        self.kernel = self.add_weight(name="kernel", shape=(shape[-1], self.units), initializer="glorot_uniform")
        self.bias = self.add_weight(name="bias", shape=(self.units,), initializer="zeros")
        self.gate = self.add_weight(name="gate", shape=(self.units,), initializer="zeros")

    def call(self, inputs):
        damping = 1.0 - self.strength * tf.sigmoid(self.gate)
        return tf.nn.relu(tf.matmul(inputs, self.kernel) + self.bias) * damping

    def get_config(self):
        config = super().get_config()
        config.update(units=self.units, strength=self.strength)
        return config


def table_model(columns, outputs, width=24):
    inputs = keras.Input((columns,), name="table")
    x = GatedDense(width, strength=0.9, name="first")(inputs)
    x = GatedDense(16, strength=0.9, name="second")(x)
    return keras.Model(inputs, keras.layers.Dense(outputs, name=f"head_{outputs}")(x))
