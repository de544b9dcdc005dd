import keras
import tensorflow as tf

from .text import ALPHABET


class CharModel(keras.Model):
    """Embedding, one GRU, logits for the next character."""

    def __init__(self, dim, units):
        super().__init__(name="char_model")
        self.embed = keras.layers.Embedding(len(ALPHABET), dim)
        self.gru = keras.layers.GRU(units, return_sequences=True)
        self.norm = keras.layers.LayerNormalization()
        self.out = keras.layers.Dense(len(ALPHABET))

    def call(self, codes):
        return self.out(self.norm(self.gru(self.embed(codes))))


def bits(logits, codes, tokens):
    """Share of this replica in the mean loss of a step that has `tokens` characters in all."""
    nll = tf.nn.sparse_softmax_cross_entropy_with_logits(codes, logits)
    return tf.reduce_sum(nll) / tokens


class Average:
    """Exponential moving average of the trainable weights."""

    def __init__(self, model, decay):
        self.decay = decay
        self.pairs = [(w, tf.Variable(w, trainable=False)) for w in model.trainable_variables]
        self.shadow = [s for _, s in self.pairs]

    def update(self):
        for weight, shadow in self.pairs:
            shadow.assign(self.decay * shadow + (1.0 - self.decay) * weight)
