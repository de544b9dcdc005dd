"""Made-up menus: a dish is some words, and its tags are vegan, spicy, sweet, fried and cold."""
import numpy as np

WORDS, TAGS, LONGEST = 60, 5, 9


def dishes(count, seed, truth=0):
    meaning = np.random.default_rng(truth).normal(0, 1, (WORDS, TAGS))
    popular = 1 / np.arange(1, WORDS) ** 0.9
    rng = np.random.default_rng(seed)
    ids = rng.choice(np.arange(1, WORDS), (count, LONGEST), p=popular / popular.sum())
    ids[np.arange(LONGEST) >= rng.integers(3, LONGEST + 1, count)[:, None]] = 0
    score = (meaning[ids] * (ids > 0)[..., None]).sum(1) + rng.normal(0, 0.5, (count, TAGS))
    return ids.astype("int32"), (score > 0.4).astype("float32")


def frequencies(ids):
    counts = np.bincount(ids.ravel(), minlength=WORDS)
    return counts / counts[1:].sum()
