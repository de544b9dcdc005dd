"""Synthetic aerial pictures with a known number of people (bright dots), and their density maps."""
import numpy as np
import tensorflow as tf

SIDE = 20
STRIDE = 4          # the density map is coarser than the picture


def draw(count, seed, most=9):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:SIDE, :SIDE]
    pictures = rng.normal(0.2, 0.05, (count, SIDE, SIDE, 1)).astype("float32")
    density = np.zeros((count, SIDE // STRIDE, SIDE // STRIDE, 1), "float32")
    for i in range(count):
        for _ in range(rng.integers(0, most + 1)):
            cy, cx = rng.uniform(1, SIDE - 1.01, 2)
            pictures[i, ..., 0] += 0.7 * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / 2)
            density[i, int(cy) // STRIDE, int(cx) // STRIDE, 0] += 1
    return pictures, density


def batches(strategy, arrays, global_batch, epoch=None):
    """A distributed dataset; shuffled by the number of the epoch if that is given. The last batch may be small."""
    data = tf.data.Dataset.from_tensor_slices(arrays)
    if epoch is not None:
        data = data.shuffle(len(arrays[0]), seed=100 + epoch, reshuffle_each_iteration=False)
    data = data.batch(global_batch)
    return strategy.experimental_distribute_dataset(data)
