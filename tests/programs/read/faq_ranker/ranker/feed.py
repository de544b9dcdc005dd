import numpy as np
import tensorflow as tf

ENTRIES, FEATURES = 12, 10


def questions(count, seed):
    rng = np.random.default_rng(seed)
    entries = np.random.default_rng(99).normal(size=(ENTRIES, FEATURES))
    right = rng.integers(0, ENTRIES, count)
    asked = entries[right] + rng.normal(0, 1.1, (count, FEATURES))
    return asked.astype("float32"), right.astype("int32")


class Feed:
    """Hands each replica its own part of every global batch."""

    def __init__(self, strategy, count, seed, batch):
        self.strategy, self.batch = strategy, batch
        self.asked, self.right = questions(count, seed)

    def epoch(self, number=None):
        order = np.arange(len(self.right))
        if number is not None:
            order = np.random.default_rng(1000 + number).permutation(order)

        def per_replica(context):
            size = context.get_per_replica_batch_size(self.batch)
            data = tf.data.Dataset.from_tensor_slices((self.asked[order], self.right[order]))
            return data.batch(size, drop_remainder=True).prefetch(1)

        yield from self.strategy.distribute_datasets_from_function(per_replica)
