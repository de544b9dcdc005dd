import numpy as np


def cells(count, seed, size=12):
    """Pictures of round cells; half of them cut off where the microscope saw nothing."""
    rng = np.random.default_rng(seed)
    rows, cols = np.mgrid[:size, :size]
    picture = rng.normal(0.2, 0.15, (count, size, size))
    truth = np.zeros((count, size, size))
    seen = np.ones((count, size, size))
    for i in range(count):
        for _ in range(rng.integers(1, 4)):
            r, c, radius = rng.uniform(2, size - 2, 2).tolist() + [rng.uniform(1.2, 3.0)]
            truth[i][(rows - r) ** 2 + (cols - c) ** 2 < radius ** 2] = 1
        if i % 3 == 0:
            seen[i, :, rng.integers(3, size):] = 0
        picture[i] += (0.4 + 0.6 * i / count) * truth[i]
    return tuple(a[..., None].astype("float32") for a in (picture * seen, truth, seen))
