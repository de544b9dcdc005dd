"""Mixture of experts whose load is balanced without a loss of its own (Wang et al., 2024).

Each expert has an offset that is added to its score when experts are chosen. After every step the offset of a crowded
expert goes down and that of an idle one goes up.
"""
import keras
import tensorflow as tf


class Expert(keras.layers.Layer):
    def __init__(self, hidden, outputs, **options):
        super().__init__(**options)
        self.hidden = keras.layers.Dense(hidden, activation="relu")
        self.out = keras.layers.Dense(outputs)
        self.offset = self.add_weight(shape=(), initializer="zeros", trainable=False, name="offset")

    def call(self, x):
        return self.out(self.hidden(x))


class Mixture(keras.Model):
    def __init__(self, outputs, experts=4, hidden=12):
        super().__init__()
        self.gate = keras.layers.Dense(experts)
        self.experts = tuple(Expert(hidden, outputs, name=f"expert_{i}") for i in range(experts))

    def call(self, x):
        """The outputs, and which expert was chosen for each row."""
        scores = tf.nn.softmax(self.gate(x))
        offsets = tf.stack([tf.convert_to_tensor(expert.offset) for expert in self.experts])
        chosen = tf.one_hot(tf.argmax(scores + offsets, -1), len(self.experts))
        weights = chosen * scores
        answers = tf.stack([expert(x) for expert in self.experts], 1)
        return tf.einsum("be,beo->bo", weights, answers), chosen
