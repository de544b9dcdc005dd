import keras
import tensorflow as tf


def glorot(seed):
    return keras.initializers.GlorotUniform(seed)


def encoder(side):
    return keras.Sequential([
        keras.Input((side, side, 1)),
        keras.layers.Conv2D(6, 3, strides=2, activation="relu", kernel_initializer=glorot(1)),
        keras.layers.Flatten(),
        keras.layers.Dense(12, kernel_initializer=glorot(2)),
    ])


def siamese(make):
    """What is called for the first and for the second view of an image."""
    net = make()
    return net, net


class Similarity(keras.layers.Layer):
    """Cosines of all pairs, times a factor that is learned."""

    def build(self, *_):
        self.log_factor = self.add_weight(shape=(), initializer=keras.initializers.Constant(1.0))

    def call(self, some, others):
        some, others = (tf.math.l2_normalize(each, -1) for each in (some, others))
        return tf.exp(self.log_factor) * tf.matmul(some, others, transpose_b=True)


def gathered(embedded):
    """The embeddings of all replicas, and the row at which those of this replica begin."""
    context = tf.distribute.get_replica_context()
    everywhere = context.all_gather(embedded, axis=0)
    first = context.replica_id_in_sync_group * tf.shape(embedded)[0]
    return everywhere, first


def contrast(similarity, one, two):
    """InfoNCE in one direction: the loss of each row."""
    others, first = gathered(two)
    right = first + tf.range(tf.shape(one)[0])
    return tf.nn.sparse_softmax_cross_entropy_with_logits(right, similarity(one, others))
