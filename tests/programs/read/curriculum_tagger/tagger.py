import keras
import tensorflow as tf

from corpus import TAGS, WORDS


class Tagger(keras.Model):
    """Embedding, LSTM and a projection on the tags."""

    def __init__(self, width=16, seed=6):
        super().__init__()
        self.embed = keras.layers.Embedding(WORDS, 12, embeddings_initializer=keras.initializers.RandomUniform(-0.3, 0.3, seed=seed))
        self.lstm = keras.layers.LSTM(width, return_sequences=True, kernel_initializer=keras.initializers.GlorotUniform(seed=seed + 1),
                                      recurrent_initializer=keras.initializers.Orthogonal(seed=seed + 2))
        self.project = keras.layers.Dense(TAGS, kernel_initializer=keras.initializers.GlorotUniform(seed=seed + 3))

    def call(self, words):
        return self.project(self.lstm(self.embed(words)))


def token_losses(tags, logits, words, log_prior):
    """Loss of every word that is not padding, with logits adjusted by the prior of the tags."""
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(tags, logits + log_prior)
    mask = tf.cast(words > 0, tf.float32)
    return each * mask, mask


def mean_over_tokens(losses, mask):
    """This replica's part of the mean over all words of the global batch."""
    tokens = tf.distribute.get_replica_context().all_reduce("SUM", tf.reduce_sum(mask))
    return tf.reduce_sum(losses) / tokens
