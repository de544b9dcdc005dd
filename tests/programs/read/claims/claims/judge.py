import keras
import tensorflow as tf


def focal(gamma: float):
    def loss(truth, chance):
        truth, chance = tf.cast(truth, tf.float32), tf.clip_by_value(chance, 1e-6, 1 - 1e-6)
        right = tf.where(truth > 0.5, chance, 1 - chance)
        return tf.reduce_sum(-((1 - right) ** gamma) * tf.math.log(right), axis=-1)

    return loss


class FScore(keras.metrics.Metric):
    def __init__(self, threshold=0.5, **kwargs):
        super().__init__(**kwargs)
        self.threshold = threshold
        self.both = self.add_variable((), "zeros", name="both")
        self.either = self.add_variable((), "zeros", name="either")

    def update_state(self, truth, chance, sample_weight=None):
        said = tf.cast(chance > self.threshold, tf.float32)
        truth = tf.cast(truth, tf.float32)
        both, either = 2 * tf.reduce_sum(said * truth), tf.reduce_sum(said + truth)
        self.both.assign_add(both)
        self.either.assign_add(either)

    def result(self):
        return self.both / tf.maximum(self.either, 1.0)
