import keras
import tensorflow as tf


class Attend(keras.layers.Layer):
    """Weighted mean over the words; padding (word 0) has no weight."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.score = keras.layers.Dense(1)

    def call(self, vectors, words):
        logits = tf.squeeze(self.score(tf.tanh(vectors)), -1)
        logits += tf.where(words == 0, -1e9, 0.0)
        return tf.reduce_sum(tf.nn.softmax(logits)[..., None] * vectors, axis=1)


class Scorer(keras.Model):
    """Scores whether a message is a complaint."""

    def __init__(self, vocabulary=60, size=12):
        super().__init__()
        self.embed = keras.layers.Embedding(vocabulary, size)
        self.attend = Attend()
        self.hidden = keras.layers.Dense(16, activation="relu")
        self.out = keras.layers.Dense(1)

    def call(self, words):
        return tf.squeeze(self.out(self.hidden(self.attend(self.embed(words), words))), -1)
