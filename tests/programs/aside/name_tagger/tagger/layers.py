import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("tagger")
class Highway(keras.layers.Layer):
    """Lets through a learned part of what it computes, and the rest of its input."""

    def __init__(self, units, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.units, self.seed = units, seed
        self.inner = keras.layers.Dense(units, "tanh", kernel_initializer=keras.initializers.GlorotUniform(seed=seed))

    def build(self, shape):
        self.inner.build(shape)
        self.gate = self.add_weight(name="gate", shape=(self.units,), initializer=keras.initializers.Constant(-0.5))
        super().build(shape)

    def call(self, x):
        part = tf.sigmoid(self.gate)
        return part * self.inner(x) + (1.0 - part) * x

    def get_config(self):
        return {**super().get_config(), "units": self.units, "seed": self.seed}


@keras.saving.register_keras_serializable("tagger")
class TagAccuracy(keras.metrics.Metric):
    """The share of the words, not of the places, whose tag is right."""

    def __init__(self, name="words_right", **kwargs):
        super().__init__(name=name, **kwargs)
        self.right = self.add_weight(name="right", initializer="zeros")
        self.words = self.add_weight(name="words", initializer="zeros")

    def update_state(self, tags, logits, sample_weight=None):
        counted = tf.cast(tags > 0, tf.float32)
        same = tf.cast(tf.equal(tf.argmax(logits, -1, output_type=tf.int32), tf.cast(tags, tf.int32)), tf.float32)
        self.right.assign_add(tf.reduce_sum(same * counted))
        self.words.assign_add(tf.reduce_sum(counted))

    def result(self):
        return self.right / self.words
