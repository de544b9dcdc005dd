"""Losses over lists. Labels are (query, document, 2): the grade and whether there is a document."""
import keras
import tensorflow as tf

FAR = -1e9


def split(labels):
    return labels[..., 0], labels[..., 1]


def listwise_softmax(labels, scores):
    """Cross-entropy between gains and the softmax of the scores; one number for each query."""
    grade, mask = split(labels)
    gain = (tf.pow(2.0, grade) - 1.0 + 1e-3) * mask
    target = gain / tf.reduce_sum(gain, -1, keepdims=True)
    log_share = tf.nn.log_softmax(tf.where(mask > 0, scores, FAR), axis=-1)
    return -tf.reduce_sum(tf.where(mask > 0, target * log_share, 0.0), axis=-1)


def pairwise_logistic(labels, scores):
    """Logistic loss over the pairs of a query with different grades, averaged within the query."""
    grade, mask = split(labels)
    better = tf.cast(grade[:, :, None] > grade[:, None, :], tf.float32) * mask[:, :, None] * mask[:, None, :]
    margin = scores[:, :, None] - scores[:, None, :]
    total = tf.reduce_sum(better * tf.nn.softplus(-margin), axis=[1, 2])
    return total / tf.maximum(tf.reduce_sum(better, axis=[1, 2]), 1.0)


class Mixed(keras.losses.Loss):
    """A listwise and a pairwise part."""

    def __init__(self, share=0.5, name="mixed"):
        super().__init__(name=name)
        self.share = share

    def call(self, labels, scores):
        return (self.share * listwise_softmax(labels, scores)
                + (1.0 - self.share) * pairwise_logistic(labels, scores))


LOSSES = {
    "listwise": listwise_softmax,
    "pairwise": pairwise_logistic,
    "mixed": Mixed(),
}
