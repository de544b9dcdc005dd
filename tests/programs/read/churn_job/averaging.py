"""Exponential moving average of the weights."""
import contextlib

import tensorflow as tf


class Average(tf.Module):
    def __init__(self, weights, decay):
        super().__init__()
        self._weights = [w.value for w in weights]
        self.decay = decay
        self.shadow = [tf.Variable(w, trainable=False) for w in self._weights]
        self.updates = tf.Variable(0, dtype=tf.int64, trainable=False)

    def update(self):
        self.updates.assign_add(1)
        seen = float(self.updates.numpy())
        decay = min(self.decay, (1.0 + seen) / (10.0 + seen))
        for shadow, weight in zip(self.shadow, self._weights):
            shadow.assign(decay * shadow + (1.0 - decay) * weight)

    @contextlib.contextmanager
    def swapped_in(self):
        """The model computes with the averaged weights inside of this context."""
        kept = [w.numpy() for w in self._weights]
        for weight, shadow in zip(self._weights, self.shadow):
            weight.assign(shadow)
        try:
            yield
        finally:
            for weight, value in zip(self._weights, kept):
                weight.assign(value)
