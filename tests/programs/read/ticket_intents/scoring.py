"""Loss and metrics that go into compile()."""
import keras
import tensorflow as tf

SMOOTHING = 0.05


def smoothed_crossentropy(y_true, y_pred):
    """Cross entropy with a little mass on the other intents; one value per ticket."""
    classes = y_pred.shape[-1]
    target = tf.one_hot(tf.cast(tf.reshape(y_true, [-1]), tf.int32), classes)
    target = target * (1.0 - SMOOTHING) + SMOOTHING / classes
    per_ticket = -tf.reduce_sum(target * tf.nn.log_softmax(y_pred), axis=-1)
    return per_ticket


class Perplexity(keras.metrics.Metric):
    """exp of the mean negative log likelihood over everything seen in the epoch."""

    def __init__(self, name="perplexity", **kwargs):
        super().__init__(name=name, **kwargs)
        self.total = self.add_weight(name="total", initializer="zeros")
        self.seen = self.add_weight(name="seen", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        nll = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.cast(tf.reshape(y_true, [-1]), tf.int32), y_pred)
        self.total.assign_add(tf.reduce_sum(nll))
        self.seen.assign_add(tf.cast(tf.size(nll), tf.float32))

    def result(self):
        return tf.exp(self.total / tf.maximum(self.seen, 1.0))


def perplexity(y_true, y_pred):
    nll = keras.losses.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)
    return nll


METRICS = {
    "accuracy": lambda: keras.metrics.SparseCategoricalAccuracy(name="accuracy"),
    "nll": lambda: keras.metrics.MeanMetricWrapper(perplexity, name="nll"),
    "perplexity": Perplexity,
}
