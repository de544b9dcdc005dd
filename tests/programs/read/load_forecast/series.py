"""Hourly load of a small grid, cut into windows."""
import numpy as np

HISTORY, HORIZON = 24, 6


def load_curve(hours, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    day = np.sin(2 * np.pi * t / 24) + 0.4 * np.sin(4 * np.pi * t / 24 + 0.7)
    week = 0.5 * np.cos(2 * np.pi * t / 168)
    noise = np.zeros(hours)
    for i in range(1, hours):
        noise[i] = 0.8 * noise[i - 1] + 0.25 * rng.normal()
    return (day + week + noise).astype(np.float32)


def windows(curve, stride):
    starts = np.arange(0, len(curve) - HISTORY - HORIZON, stride)
    x = np.stack([curve[s : s + HISTORY] for s in starts])[..., None]
    y = np.stack([curve[s + HISTORY : s + HISTORY + HORIZON] for s in starts])
    return x, y


def epoch_order(count, seed, epoch):
    """Order of the training windows in one epoch."""
    return np.random.default_rng((seed, epoch)).permutation(count)
