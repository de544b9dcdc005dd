"""Twelve days of weather at a station, and the melt of the day after."""
import itertools

import numpy as np
import tensorflow as tf

from .config import Config


def measurements(cfg: Config):
    rng = np.random.default_rng(cfg.seed)
    n = cfg.stations + cfg.held_out
    warm = np.cumsum(rng.normal(0, 0.4, (n, cfg.days)), axis=1)
    sun = rng.uniform(-1, 1, (n, cfg.days))
    weather = np.stack([warm, sun], axis=-1).astype("float32")
    recent = np.maximum(warm[:, -4:], 0).mean(axis=1)
    melt = recent * (1 + 0.5 * sun[:, -1]) + 0.1 * rng.normal(size=n)
    melt = melt[:, None].astype("float32")
    k = cfg.stations
    return (weather[:k], melt[:k]), (weather[k:], melt[k:])


def orders(cfg: Config, done: int):
    """Yields the order of the stations in each epoch that is still to come."""
    rng = np.random.default_rng(cfg.seed + 1)
    every = (rng.permutation(cfg.stations) for _ in range(cfg.epochs))
    return itertools.islice(every, done, None)


def batches(table, cfg: Config):
    return tf.data.Dataset.from_tensor_slices(table).batch(cfg.batch, drop_remainder=True)
