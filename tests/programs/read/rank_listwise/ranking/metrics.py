"""Ranking metrics that add up over batches and replicas."""
import keras
import tensorflow as tf

from .losses import FAR, split


class PairAccuracy(keras.metrics.Metric):
    """Share of all pairs of different grade that are in the right order."""

    def __init__(self, name="pairs", **kwargs):
        super().__init__(name=name, **kwargs)
        self.right = self.add_weight(name="right", initializer="zeros")
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, labels, scores, sample_weight=None):
        grade, mask = split(labels)
        better = tf.cast(grade[:, :, None] > grade[:, None, :], tf.float32) * mask[:, :, None] * mask[:, None, :]
        ahead = tf.cast(scores[:, :, None] > scores[:, None, :], tf.float32)
        self.right.assign(self.right + tf.reduce_sum(better * ahead))
        self.total.assign(self.total + tf.reduce_sum(better))

    def result(self):
        return self.right / tf.maximum(self.total, 1.0)


def log2(x):
    return tf.math.log(x) / tf.math.log(2.0)


def ndcg(labels, scores, k=5):
    """NDCG@k of each query."""
    grade, mask = split(labels)
    gain = (tf.pow(2.0, grade) - 1.0) * mask
    scores = tf.where(mask > 0, scores, FAR)
    discount = 1.0 / log2(tf.range(2, k + 2, dtype=tf.float32))
    order = tf.math.top_k(scores, k).indices
    got = tf.reduce_sum(tf.gather(gain, order, batch_dims=1) * discount, -1)
    ideal = tf.reduce_sum(tf.math.top_k(gain, k).values * discount, -1)
    return tf.math.divide_no_nan(got, ideal)


def standard():
    return [keras.metrics.MeanMetricWrapper(ndcg, name="ndcg5"), PairAccuracy()]
