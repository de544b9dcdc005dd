"""Parcels with distance, weight, stops, hour and depot, and how many hours they took."""
import numpy as np
import tensorflow as tf

COLUMNS = ("distance", "weight", "stops", "rush_hour", "depot_load", "rain")


def parcels(rows, seed):
    rng = np.random.default_rng(seed)
    table = np.stack([
        rng.gamma(2.0, 20.0, rows),
        rng.exponential(3.0, rows),
        rng.poisson(12, rows),
        rng.integers(0, 2, rows),
        rng.uniform(0, 1, rows),
        rng.uniform(0, 1, rows) ** 3,
    ], axis=1).astype("float32")
    distance, weight, stops, rush, load, rain = table.T
    hours = distance / 30 + stops / 6 * (1 + 0.5 * rush) + 2 * load * rain + rng.gamma(1.5, 0.9, rows)
    return table, hours[:, None].astype("float32")


def batches(table, hours, size):
    # the rows are in random order as they come, and every epoch takes them in this order
    return tf.data.Dataset.from_tensor_slices((table, hours)).batch(size).prefetch(1)
