"""The text tower and the loss between two batches of vectors."""
import keras
import tensorflow as tf
from keras import layers

from corpus import LENGTH, VOCAB


class MeanOfWords(layers.Layer):
    """Mean of the word vectors, padding left out."""

    def __init__(self, width, **kwargs):
        super().__init__(**kwargs)
        self.table = layers.Embedding(
            VOCAB, width, embeddings_initializer=keras.initializers.RandomNormal(stddev=0.5))

    def call(self, ids):
        keep = tf.cast(ids > 0, tf.float32)[..., None]
        return tf.reduce_sum(self.table(ids) * keep, 1) / tf.reduce_sum(keep, 1)


def text_tower(width=16, out=12):
    ids = keras.Input((LENGTH,), dtype="int32")
    x = MeanOfWords(width)(ids)
    x = layers.Dense(24, activation="tanh")(x)
    return keras.Model(ids, layers.Dense(out)(x))


def unit(vectors):
    return tf.math.l2_normalize(vectors, axis=-1)


def all_candidates(keys):
    """Keys of all replicas, and where this replica's own ones begin."""
    context = tf.distribute.get_replica_context()
    begin = context.replica_id_in_sync_group * tf.shape(keys)[0]
    return context.all_gather(keys, axis=0), begin


def contrast(queries, keys, sharpness):
    """Cross entropy of the right key among the keys of the global batch, for each query."""
    candidates, begin = all_candidates(keys)
    labels = begin + tf.range(tf.shape(queries)[0])
    scores = sharpness * tf.matmul(queries, candidates, transpose_b=True)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores)
