import keras
from keras import layers, ops

from .data import CLASSES, CODES, DEPARTMENTS


class Sharpen(layers.Layer):
    """Multiplies logits by one learned factor."""

    def __init__(self, start=3.0, **kwargs):
        super().__init__(**kwargs)
        self.start = start
        self.factor = self.add_weight(shape=(), initializer=keras.initializers.Constant(start), name="factor")

    def call(self, logits):
        return self.factor * logits


class ClaimNet(keras.Model):
    """The sum of what the codes are, the department, and blocks that correct it."""

    def __init__(self, width=16, depth=2, **kwargs):
        super().__init__(**kwargs)
        self.code = layers.Embedding(CODES + 1, width)
        self.department = layers.Embedding(DEPARTMENTS, width)
        self.blocks = tuple(
            keras.Sequential([layers.Dense(width, activation="relu"), layers.Dense(width)]) for _ in range(depth))
        self.classify = layers.Dense(CLASSES)
        self.sharpen = Sharpen()

    def call(self, inputs):
        codes = inputs["codes"]
        real = ops.cast(ops.not_equal(codes, 0), "float32")
        x = ops.einsum("btw,bt->bw", self.code(codes), real) + self.department(inputs["department"])
        for block in self.blocks:
            x = x + block(x)
        return self.sharpen(self.classify(x))


def make(config):
    """A network with its weights, ready to be trained or to be filled."""
    network = ClaimNet(config.width, config.depth)
    network({"codes": ops.zeros((1, 8), "int32"), "department": ops.zeros((1,), "int32")})
    return network
