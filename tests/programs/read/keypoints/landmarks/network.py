import keras
import tensorflow as tf
from keras import layers


def conv_block(x, filters, stride=1, synchronized=True):
    x = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization(momentum=0.8, synchronized=synchronized)(x)
    return layers.Activation("relu")(x)


class SoftArgmax(layers.Layer):
    """Expected position under the softmax of every heat map, and the spread around it."""

    def build(self, shape):
        self.sharpness = self.add_weight(shape=(), initializer="ones", name="sharpness")
        rows = tf.linspace(0.0, 1.0, shape[1])
        self.grid_y = tf.reshape(rows, [1, -1, 1, 1])
        self.grid_x = tf.reshape(tf.linspace(0.0, 1.0, shape[2]), [1, 1, -1, 1])

    def call(self, maps):
        shape = tf.shape(maps)
        flat = tf.reshape(maps * self.sharpness, [shape[0], -1, shape[3]])
        p = tf.reshape(tf.nn.softmax(flat, axis=1), shape)
        y = tf.reduce_sum(p * self.grid_y, axis=[1, 2])
        x = tf.reduce_sum(p * self.grid_x, axis=[1, 2])
        spread = tf.reduce_sum(p * (self.grid_y ** 2 + self.grid_x ** 2), axis=[1, 2]) - y ** 2 - x ** 2
        return tf.stack([y, x], axis=-1), spread


def build_network(settings):
    picture = keras.Input((settings.side, settings.side, 1))
    x = conv_block(picture, settings.filters)
    x = conv_block(x, 2 * settings.filters, stride=2)
    x = conv_block(x, 2 * settings.filters)
    maps = layers.Conv2D(settings.joints, 1, name="maps")(x)
    return keras.Model(picture, SoftArgmax(name="where")(maps), name="landmarks")
