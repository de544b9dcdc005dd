"""Support tickets (generated) and the order in which training reads them."""
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

INTENTS = ("refund", "login", "shipping", "cancel", "invoice", "other")
VOCAB = 160
LENGTH = 14


@dataclass(frozen=True)
class Split:
    tokens: np.ndarray
    labels: np.ndarray

    def __len__(self):
        return len(self.labels)


def _draw(rng, count, noise):
    labels = rng.integers(0, len(INTENTS), count)
    tokens = rng.integers(60, VOCAB, (count, LENGTH))
    for row, label in enumerate(labels):
        where = rng.choice(LENGTH, 3, replace=False)
        tokens[row, where] = 10 * label + rng.integers(0, 10, 3)
    # agents choose the wrong intent now and then
    wrong = rng.random(count) < noise
    labels = np.where(wrong, rng.integers(0, len(INTENTS), count), labels)
    return Split(tokens.astype("int32"), labels.astype("int32"))


def load(seed=11):
    rng = np.random.default_rng(seed)
    return _draw(rng, 192, 0.35), _draw(rng, 96, 0.1), _draw(rng, 96, 0.1)


def train_stream(split, batch, first_epoch, epochs, seed):
    """All epochs that are still to come, one after another, each in an order of its own."""
    orders = [np.random.default_rng([seed, epoch]).permutation(len(split)) for epoch in range(first_epoch, epochs)]
    order = np.concatenate(orders)
    tokens, labels = tf.constant(split.tokens), tf.constant(split.labels)

    def rows(index):
        return tf.gather(tokens, index), tf.gather(labels, index)

    return tf.data.Dataset.from_tensor_slices(order).batch(batch, drop_remainder=True).map(rows).prefetch(2)


def fixed_stream(split, batch):
    return tf.data.Dataset.from_tensor_slices((split.tokens, split.labels)).batch(batch, drop_remainder=True)
