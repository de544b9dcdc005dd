import keras
import tensorflow as tf

from .config import Config


class SetNet(keras.Model):
    """Each point alone, then the largest of all points, then the class."""

    def __init__(self, cfg: Config):
        super().__init__()
        self.near = keras.layers.Dense(12, "relu")
        self.far = keras.layers.Dense(24, "relu")
        self.mix = keras.layers.Dense(16, "relu")
        self.head = keras.layers.Dense(cfg.classes)

    def call(self, cloud):
        x = self.far(self.near(cloud))
        x = tf.concat([tf.reduce_max(x, axis=1), tf.reduce_mean(tf.abs(cloud), axis=1)], -1)
        return self.head(self.mix(x))
