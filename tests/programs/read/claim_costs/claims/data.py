"""Claims: the codes of a visit, more or fewer of them, and the department; how costly it gets, in four classes."""
import numpy as np
import tensorflow as tf

CODES, DEPARTMENTS, CLASSES = 50, 6, 4


def draw(count, seed):
    rng = np.random.default_rng(seed)
    world = np.random.default_rng(99)
    price, share = world.gamma(1.5, 1.0, CODES), world.uniform(0.5, 1.5, DEPARTMENTS)
    sizes = rng.integers(1, 9, count)
    codes = [rng.integers(0, CODES, size) for size in sizes]
    department = rng.integers(0, DEPARTMENTS, count)
    cost = np.array([price[c].sum() for c in codes]) * share[department]
    return codes, department, np.digitize(cost, [4.0, 7.0, 11.0])


def dataset(count, seed, batch):
    """Batches of padded codes (0 is padding), departments and classes."""
    codes, department, label = draw(count, seed)
    ragged = tf.ragged.constant([c + 1 for c in codes], dtype=tf.int32)
    data = tf.data.Dataset.from_tensor_slices((ragged, np.int32(department), np.int32(label))).ragged_batch(batch)
    return data.map(lambda c, d, y: ({"codes": c.to_tensor(shape=(None, 8)), "department": d}, y))
