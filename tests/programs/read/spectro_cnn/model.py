import functools

import keras

from spectrograms import BINS, FRAMES, KINDS

# statistics over the whole global batch
Norm = functools.partial(keras.layers.BatchNormalization, momentum=0.7, synchronized=True)


@keras.saving.register_keras_serializable("sounds")
class Block(keras.layers.Layer):
    def __init__(self, filters, **kwargs):
        super().__init__(**kwargs)
        self.filters = filters
        self.conv = keras.layers.Conv2D(filters, 3, padding="same", use_bias=False)
        self.norm = Norm()

    def build(self, shape):
        self.conv.build(shape)
        self.norm.build((*shape[:-1], self.filters))
        self.built = True

    def call(self, x, training=False):
        return keras.activations.relu(self.norm(self.conv(x), training=training))

    def get_config(self):
        return {**super().get_config(), "filters": self.filters}


def build(filters=(6, 8)):
    x = image = keras.Input((BINS, FRAMES, 1))
    for count in filters:
        x = Block(count)(x)
        x = keras.layers.MaxPooling2D()(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    return keras.Model(image, keras.layers.Dense(len(KINDS))(x), name="sounds")
