"""Insurance policies, some of which had a claim."""
import numpy as np

from . import NUMBERS


def policies(first: int, last: int):
    for number in range(first, last):
        rng = np.random.default_rng((77, number))
        row = rng.normal(loc=0.8 * np.sin(number / 40), size=len(NUMBERS))
        region = rng.integers(0, 6)
        risk = 1.4 * row[1] - row[0] * row[2] + 0.7 * (region % 3) - 1.6
        claim = float(rng.uniform() < 1 / (1 + np.exp(-2 * risk)))
        yield {"numbers": row.astype("float32"), "region": np.int32(region)}, np.float32([claim])
