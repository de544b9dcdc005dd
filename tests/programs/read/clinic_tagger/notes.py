"""Clinical notes with entity tags (generated), padded to one length with zeros."""
import numpy as np
import tensorflow as tf


def make_notes(cfg, count, seed, noise=0.0):
    rng = np.random.default_rng(seed)
    words = np.zeros((count, cfg.max_len), "int32")
    tags = np.zeros((count, cfg.max_len), "int32")
    for i in range(count):
        n = int(rng.integers(4, cfg.max_len + 1))
        words[i, :n] = rng.integers(1, cfg.vocab, n)
        tags[i, :n] = np.where(words[i, :n] < 10 * (cfg.tags - 1), words[i, :n] // 10 + 1, 0)
        tags[i, :n] = np.where(words[i, :n] >= 10 * (cfg.tags - 1), 0, tags[i, :n])
        flip = rng.random(n) < noise
        tags[i, :n] = np.where(flip, rng.integers(0, cfg.tags, n), tags[i, :n])
    return words, tags


class NoteFeed:
    """Gives the training notes in an order that depends on the epoch only."""

    def __init__(self, cfg, words, tags):
        self.cfg, self.words, self.tags = cfg, words, tags
        self.epoch = self.begun = 0

    def start(self, epoch, logs=None):
        self.epoch = epoch
        self.begun += 1

    def _rows(self):
        order = np.random.default_rng([self.cfg.seed, self.epoch]).permutation(len(self.words))
        for i in order:
            yield self.words[i], self.tags[i]

    def dataset(self):
        row = tf.TensorSpec((self.cfg.max_len,), tf.int32)
        data = tf.data.Dataset.from_generator(self._rows, output_signature=(row, row))
        data = data.apply(tf.data.experimental.assert_cardinality(len(self.words)))
        return data.batch(self.cfg.batch, drop_remainder=True)


def fixed(cfg, words, tags):
    return tf.data.Dataset.from_tensor_slices((words, tags)).batch(cfg.batch, drop_remainder=True)
