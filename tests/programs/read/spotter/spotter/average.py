"""An exponential moving average of weights, which is what is evaluated."""
import contextlib

import tensorflow as tf


class Average(tf.Module):
    def __init__(self, weights, decay, updates):
        super().__init__()
        self.sources = weights
        self.decay = decay
        self.updates = updates
        self.shadows = [tf.Variable(tf.convert_to_tensor(each), trainable=False,
                                    aggregation=tf.VariableAggregation.MEAN) for each in weights]

    def update(self):
        """Follows the weights, faster in the first steps; each replica calls it."""
        count = tf.cast(self.updates, tf.float32)
        decay = tf.minimum(self.decay, (1.0 + count) / (10.0 + count))
        for shadow, source in zip(self.shadows, self.sources):
            shadow.assign(decay * shadow + (1.0 - decay) * tf.convert_to_tensor(source))
        self.updates.assign_add(1)

    @contextlib.contextmanager
    def in_place(self):
        kept = [each.numpy() for each in self.sources]
        for source, shadow in zip(self.sources, self.shadows):
            source.assign(shadow.numpy())
        yield
        for source, value in zip(self.sources, kept):
            source.assign(value)
