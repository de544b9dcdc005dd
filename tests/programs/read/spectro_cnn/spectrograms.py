"""Spectrograms of machine sounds (generated): bearing, belt, valve, fan."""
import numpy as np

KINDS = ("bearing", "belt", "valve", "fan")
BINS, FRAMES = 12, 12


def sounds(count, seed):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, len(KINDS), count)
    image = rng.normal(0, 1.0, (count, BINS, FRAMES, 1)) * rng.uniform(0.5, 2.0, (count, 1, 1, 1))
    for i, k in enumerate(kind):
        if k < 2:
            image[i, 3 + 4 * k, :, 0] += 2.0
        else:
            image[i, :, 2 + 3 * (k - 2)::6, 0] += 2.0
    return image.astype("float32"), kind.astype("int32")
