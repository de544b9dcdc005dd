import keras
from keras import layers


class Counter(keras.Model):
    """Fully convolutional regression of a density map; the sum of the map is the count."""

    def __init__(self, filters=(6, 10)):
        super().__init__(name="counter")
        self.stages = [layers.Conv2D(f, 3, strides=2, padding="same", activation="relu") for f in filters]
        self.norm = layers.LayerNormalization()
        self.density = layers.Conv2D(1, 1, activation="softplus", bias_initializer=keras.initializers.Constant(-1.5))

    def call(self, picture):
        x = picture
        for stage in self.stages:
            x = stage(x)
        return self.density(self.norm(x))
