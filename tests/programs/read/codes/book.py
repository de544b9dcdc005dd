import keras
import tensorflow as tf


class Codebook(keras.layers.Layer):
    """Vector quantisation; the codes follow the mean of what they stand for."""

    def __init__(self, codes, width, decay=0.8):
        super().__init__()
        self.codes, self.width, self.decay = codes, width, decay

    def build(self, shape):
        same = dict(trainable=False, aggregation="mean")
        self.table = self.add_weight(name="table", shape=(self.codes, self.width),
                                     initializer=keras.initializers.RandomNormal(0, 1.5, seed=40), **same)
        self.size = self.add_weight(name="size", shape=(self.codes,), initializer="ones", **same)
        self.usage = self.add_weight(name="usage", shape=(), initializer="zeros", **same)

    def call(self, x, training=False):
        table = tf.convert_to_tensor(self.table)
        distance = tf.reduce_sum(tf.square(x[:, None] - table[None]), -1)
        one_hot = tf.one_hot(tf.argmin(distance, -1), self.codes)
        if training:
            self.follow(tf.reduce_sum(one_hot, 0), tf.matmul(one_hot, x, transpose_a=True))
        quantised = tf.matmul(one_hot, table)
        return x + tf.stop_gradient(quantised - x), tf.reduce_sum(tf.square(x - tf.stop_gradient(quantised)), -1)

    def follow(self, counts, sums):
        everywhere = tf.distribute.get_replica_context()
        counts, sums = everywhere.all_reduce("SUM", [counts, sums])
        centre = sums / tf.maximum(counts, 1.0)[:, None]
        pull = (1 - self.decay) * tf.cast(counts > 0, tf.float32)[:, None]
        self.table.assign(self.table + pull * (centre - self.table))
        self.size.assign(self.decay * self.size + (1 - self.decay) * counts)
        share = counts / tf.reduce_sum(counts)
        self.usage.assign(tf.exp(-tf.reduce_sum(share * tf.math.log(share + 1e-9))))
