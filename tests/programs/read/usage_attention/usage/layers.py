import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("usage")
class AttentionPool(keras.layers.Layer):
    """Weighted mean over the days; the weights are learned from the days themselves."""

    def __init__(self, width, **kwargs):
        super().__init__(**kwargs)
        self.width = width
        self.key = keras.layers.Dense(width, activation="tanh")
        self.score = keras.layers.Dense(1, use_bias=False)

    def build(self, shape):
        self.key.build(shape)
        self.score.build((*shape[:-1], self.width))

    def call(self, days):
        weights = tf.nn.softmax(self.score(self.key(days)), axis=1)
        return tf.reduce_sum(weights * days, axis=1)

    def get_config(self):
        return {**super().get_config(), "width": self.width}


def norm(name):
    options = dict(momentum=0.8, epsilon=1e-2)
    return keras.layers.BatchNormalization(name=name, synchronized=True, **options)
