"""Synthetic sales of some products and the windows cut from them."""
import numpy as np
import tensorflow as tf

PRODUCTS, HISTORY, AHEAD = 8, 14, 3


def sales(days, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(days)
    level = rng.uniform(0.5, 2.0, (PRODUCTS, 1))
    week = rng.normal(0, 0.4, (PRODUCTS, 7))[:, t % 7]
    shocks = rng.gamma(2.0, 0.15, (PRODUCTS, days))
    return (level * np.exp(week) * (1 + 0.2 * np.sin(t / 15)) + shocks).astype(np.float32)


def windows(table, stride):
    history, product, future = [], [], []
    for number, row in enumerate(table):
        for start in range(0, row.size - HISTORY - AHEAD + 1, stride):
            history.append(row[start : start + HISTORY, None])
            future.append(row[start + HISTORY : start + HISTORY + AHEAD])
            product.append(number)
    return np.stack(history), np.array(product, np.int32), np.stack(future)


class Sampler:
    """Gives the training batches of each epoch; the orders follow from one seed."""

    def __init__(self, part, batch, seed):
        self.part, self.batch, self.seed = part, batch, seed

    def order(self, epoch):
        rng = np.random.default_rng(self.seed)
        for _ in range(epoch):
            rng.permutation(len(self.part[0]))
        return rng.permutation(len(self.part[0]))

    def __call__(self, epoch):
        order = self.order(epoch)
        history, product, future = (array[order] for array in self.part)
        data = tf.data.Dataset.from_tensor_slices(((history, product), future))
        return data.batch(self.batch, drop_remainder=True)


def fixed(part, batch):
    history, product, future = part
    return tf.data.Dataset.from_tensor_slices(((history, product), future)).batch(batch)
