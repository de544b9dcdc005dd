"""Synthetic newswire items and the input pipelines over them."""
import numpy as np
import tensorflow as tf

PAD = 0


def make_items(count, config, seed):
    """Token ids [count, max_len] (0 is padding) and topic ids [count]."""
    rng = np.random.default_rng(seed)
    topics = rng.integers(0, config.topics, size=count)
    base = rng.dirichlet(np.full(config.vocab - 1, 0.4))
    shared = np.random.default_rng(config.seed)
    profiles = shared.dirichlet(np.full(config.vocab - 1, 0.08), size=config.topics)
    tokens = np.zeros((count, config.max_len), np.int32)
    for row, topic in enumerate(topics):
        length = rng.integers(6, config.max_len + 1)
        mix = 0.65 * base + 0.35 * profiles[topic]
        tokens[row, :length] = 1 + rng.choice(config.vocab - 1, size=length, p=mix)
    return tokens, topics.astype(np.int32)


class Corpus:
    """Train and dev items held in memory."""

    def __init__(self, config):
        self.config = config
        self.train = make_items(config.train_items, config, config.seed + 1)
        self.dev = make_items(config.dev_items, config, config.seed + 2)

    def train_stream(self, batch_size, first_epoch, last_epoch):
        """Batches of the epochs first_epoch .. last_epoch - 1, one after the other.

        The order inside an epoch depends on nothing but the number of that epoch.
        """
        tokens, topics = (tf.constant(part) for part in self.train)
        seed = self.config.seed

        def order(epoch):
            shuffled = tf.random.experimental.stateless_shuffle(
                tf.range(len(topics)), seed=tf.stack([seed, tf.cast(epoch, tf.int32)]))
            return tf.data.Dataset.from_tensor_slices(shuffled)

        epochs = tf.data.Dataset.range(first_epoch, last_epoch)
        stream = epochs.flat_map(order)
        stream = stream.map(lambda row: (tokens[row], topics[row]))
        return stream.batch(batch_size, drop_remainder=True).prefetch(2)

    def dev_batches(self, batch_size):
        return tf.data.Dataset.from_tensor_slices(self.dev).batch(batch_size)
