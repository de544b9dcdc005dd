"""Character windows of generated product names."""
import numpy as np
import tensorflow as tf

ALPHABET = "\nabcdefghijklmnopqrstuvwxyz-0123456789"
PARTS = ("nova", "tek", "aero", "lux", "mini", "pro", "max", "omni", "zen", "flex", "core", "volt")


def corpus(seed, names=180):
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(names):
        stem = "".join(rng.choice(PARTS, rng.integers(1, 3)))
        lines.append(stem + "-" + str(rng.integers(1, 500)))
    return "\n".join(lines)


def windows(text, length):
    codes = np.array([ALPHABET.index(c) for c in text], "int32")
    starts = np.arange(0, len(codes) - length - 1, length)
    x = np.stack([codes[s:s + length] for s in starts])
    y = np.stack([codes[s + 1:s + length + 1] for s in starts])
    return x, y


class Batches:
    """Training and held-out windows, cut into full global batches."""

    def __init__(self, settings, strategy):
        x, y = windows(corpus(settings.seed), settings.window)
        held = len(x) // 5
        self.train = x[:-held], y[:-held]
        self.valid = x[-held:], y[-held:]
        self.settings, self.strategy = settings, strategy

    def _feed(self, x, y):
        data = tf.data.Dataset.from_tensor_slices((x, y)).batch(self.settings.batch, drop_remainder=True)
        return self.strategy.experimental_distribute_dataset(data)

    def training(self, epoch):
        order = np.random.default_rng((self.settings.seed, epoch)).permutation(len(self.train[0]))
        return self._feed(self.train[0][order], self.train[1][order])

    def held_out(self):
        return self._feed(*self.valid)
