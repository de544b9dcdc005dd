"""Metrics that Keras does not have."""
import keras
import tensorflow as tf


class MacroRecall(keras.metrics.Metric):
    """Recall of each topic, averaged over the topics."""

    def __init__(self, topics, name="macro_recall", **kwargs):
        super().__init__(name=name, **kwargs)
        self.topics = topics
        self.hits = self.add_variable((topics,), "zeros", name="hits")
        self.support = self.add_variable((topics,), "zeros", name="support")

    def update_state(self, labels, logits, sample_weight=None):
        hits, support = recall_counts(labels, logits, self.topics)
        self.hits.assign(self.hits + hits)
        self.support.assign(self.support + support)

    def result(self):
        return macro_average(tf.convert_to_tensor(self.hits), tf.convert_to_tensor(self.support))


def recall_counts(labels, logits, topics):
    expected = tf.one_hot(labels, topics)
    guessed = tf.one_hot(tf.argmax(logits, axis=-1), topics)
    return tf.reduce_sum(expected * guessed, 0), tf.reduce_sum(expected, 0)


def macro_average(hits, support):
    present = tf.cast(support > 0, tf.float32)
    recall = tf.math.divide_no_nan(hits, support)
    return tf.math.divide_no_nan(tf.reduce_sum(recall * present), tf.reduce_sum(present))
