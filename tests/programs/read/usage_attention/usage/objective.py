"""The loss (Poisson likelihood) and what is reported beside it."""
import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("usage")
def poisson_loss(calls, log_rate):
    """Negative log likelihood of each customer, without the constant."""
    log_rate = tf.clip_by_value(log_rate, -5.0, 4.0)
    return tf.squeeze(tf.exp(log_rate) - calls * log_rate, axis=-1)


@keras.saving.register_keras_serializable("usage")
class Explained(keras.metrics.Metric):
    """Share of the variance of the calls that the rates explain."""

    def __init__(self, name="explained", **kwargs):
        super().__init__(name=name, **kwargs)
        names = ("count", "total", "squares", "errors")
        self.parts = [self.add_weight(name=n, shape=(), initializer="zeros") for n in names]

    def update_state(self, calls, log_rate, sample_weight=None):
        sums = (tf.ones_like(calls), calls, tf.square(calls), tf.square(calls - tf.exp(log_rate)))
        for part, value in zip(self.parts, sums):
            part.assign_add(tf.reduce_sum(value))

    def result(self):
        count, total, squares, errors = [tf.convert_to_tensor(p) for p in self.parts]
        return 1.0 - errors / (squares - total * total / count)


def metrics():
    return [Explained()]
