"""Layers for images with noise."""
import keras
from keras import ops


@keras.saving.register_keras_serializable("denoise")
class Shrink(keras.layers.Layer):
    """Soft threshold of features, by a part of their mean size, which is followed in training."""

    def __init__(self, part=0.1, follow=0.2, **kwargs):
        super().__init__(**kwargs)
        self.part, self.follow = part, follow

    def build(self, shape):
        self.gain = self.add_weight(name="gain", shape=(shape[-1],), initializer="ones")
        self.size = self.add_weight(
            name="size", shape=(), initializer="ones", trainable=False, aggregation="mean"
        )

    def call(self, x, training=False):
        if training:
            seen = ops.mean(ops.abs(x))
            self.size.assign((1 - self.follow) * self.size + self.follow * seen)
        limit = self.part * ops.stop_gradient(ops.convert_to_tensor(self.size))
        return self.gain * ops.sign(x) * ops.relu(ops.abs(x) - limit)

    def get_config(self):
        return {**super().get_config(), "part": self.part, "follow": self.follow}
