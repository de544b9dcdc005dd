"""Index sets for cross-validation."""
import numpy as np


def k_folds(count, k, seed):
    """Yields (training rows, held-out rows); the rows are shuffled once."""
    order = np.random.default_rng(seed).permutation(count)
    parts = np.array_split(order, k)
    for held in range(k):
        yield np.concatenate([p for i, p in enumerate(parts) if i != held]), parts[held]


def full_batches(rows, size, epoch, seed):
    """Rows in the order of the epoch, cut to whole batches."""
    order = np.random.default_rng([seed, epoch]).permutation(rows)
    return order[:len(order) // size * size]
