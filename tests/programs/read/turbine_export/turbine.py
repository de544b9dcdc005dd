"""Recurrent model of turbine vibrations, and the layers and metrics that it needs."""
import keras
import tensorflow as tf

STEPS, CHANNELS = 20, 3


class Gain(keras.layers.Layer):
    """A gain and an offset for each channel: sensors age."""

    def build(self, shape):
        self.gain = self.add_weight(name="gain", shape=(shape[-1],), initializer="ones")
        self.offset = self.add_weight(name="offset", shape=(shape[-1],), initializer="zeros")

    def call(self, x):
        return x * self.gain + self.offset


class MissedFaults(keras.metrics.Metric):
    """The share of real faults that the model does not see."""

    def __init__(self, name="missed", **options):
        super().__init__(name=name, **options)
        self.missed = self.add_weight(name="missed", initializer="zeros")
        self.faults = self.add_weight(name="faults", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true = tf.cast(y_true, tf.float32)
        self.missed.assign_add(tf.reduce_sum(y_true * tf.cast(y_pred < 0.5, tf.float32)))
        self.faults.assign_add(tf.reduce_sum(y_true))

    def result(self):
        return self.missed / tf.maximum(self.faults, 1.0)


class TurbineModel(keras.Model):
    def __init__(self, units=16, seed=0):
        super().__init__()
        draw = keras.initializers.GlorotUniform
        self.gain = Gain()
        self.lift = keras.layers.Dense(units, kernel_initializer=draw(seed))
        self.norm = keras.layers.BatchNormalization(momentum=0.8, synchronized=True)
        self.memory = keras.layers.LSTM(
            units, kernel_initializer=draw(seed + 1),
            recurrent_initializer=keras.initializers.Orthogonal(seed=seed + 2))
        self.judge = keras.layers.Dense(1, "sigmoid", kernel_initializer=draw(seed + 3))

    def call(self, x, training=False):
        x = tf.nn.relu(self.norm(self.lift(self.gain(x)), training=training))
        return self.judge(self.memory(x))
