"""Readers and books as vectors: a loan should score above books that were not taken."""
import keras
import tensorflow as tf

from .records import BOOKS, READERS


class Shelves(keras.Model):
    def __init__(self, size=8):
        super().__init__()
        self.readers = keras.layers.Embedding(READERS, size, embeddings_initializer=keras.initializers.RandomNormal(0, 0.3))
        self.books = keras.layers.Embedding(BOOKS, size, embeddings_initializer=keras.initializers.RandomNormal(0, 0.3))
        self.liked = keras.layers.Embedding(BOOKS, 1, embeddings_initializer="zeros")

    def call(self, inputs):
        reader, books = inputs
        who = self.readers(reader)[:, None]
        return tf.reduce_sum(who * self.books(books), axis=-1) + self.liked(books)[..., 0]


def sampled_loss(taken, others):
    """Logistic loss of a loan against the books beside it, for each loan."""
    return tf.nn.softplus(-taken) + tf.reduce_mean(tf.nn.softplus(others), axis=1)
