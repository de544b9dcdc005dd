import keras
from keras import layers


class Block(layers.Layer):
    def __init__(self, filters, synchronized, seed):
        super().__init__()
        self.filter = layers.Conv1D(filters, 3, padding="same", use_bias=False,
                                    kernel_initializer=keras.initializers.GlorotUniform(seed))
        self.norm = layers.BatchNormalization(momentum=0.7, synchronized=synchronized)

    def build(self, shape):
        self.filter.build(shape)
        self.norm.build(self.filter.compute_output_shape(shape))

    def call(self, x, training=False):
        return keras.ops.relu(self.norm(self.filter(x), training=training))


class Spotter(keras.Model):
    """Two blocks of convolutions over time, and the mean of what they find."""

    def __init__(self, settings):
        super().__init__()
        self.low = Block(8, settings.synchronized, 1)
        self.high = Block(10, settings.synchronized, 2)
        self.pool = layers.GlobalAveragePooling1D()
        self.word = layers.Dense(settings.words, kernel_initializer=keras.initializers.GlorotUniform(3))

    def call(self, sound, training=False):
        sound = self.low(sound, training=training)
        sound = self.high(sound, training=training)
        return self.word(self.pool(sound))
