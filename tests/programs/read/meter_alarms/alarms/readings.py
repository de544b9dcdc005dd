import numpy as np
import tensorflow as tf

HOURS = 24


def days(count, seed):
    """Readings of `count` days; in about a third of them water runs at night, too."""
    rng = np.random.default_rng(seed)
    clock = np.arange(HOURS)
    habit = 0.4 + np.exp(-((clock - 7) ** 2) / 6) + 0.8 * np.exp(-((clock - 19) ** 2) / 8)
    flow = habit * rng.gamma(6, 1 / 6, (count, 1)) + rng.normal(0, 0.25, (count, HOURS))
    leaks = rng.random(count) < 0.3
    begins = rng.integers(0, 18, count)
    running = (clock >= begins[:, None]) & leaks[:, None]
    flow += running * rng.uniform(0.1, 0.5, (count, 1))
    return flow.astype("float32"), leaks.astype("float32")


def training(flow, leaks, batch, epoch):
    """The batches of one epoch, in the order of this epoch."""
    order = np.random.default_rng([17, epoch]).permutation(len(flow))
    return tf.data.Dataset.from_tensor_slices((flow[order], leaks[order])).batch(batch, drop_remainder=True)


def held_out(flow, leaks, batch):
    return tf.data.Dataset.from_tensor_slices((flow, leaks)).batch(batch)
