"""Hourly load of a small grid (generated) and its windows."""
from dataclasses import dataclass

import numpy as np


@dataclass
class Windows:
    history: np.ndarray
    target: np.ndarray

    def __len__(self):
        return len(self.target)

    def part(self, begin, end):
        return Windows(self.history[begin:end], self.target[begin:end])


def hourly_load(hours, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    day = np.sin(2 * np.pi * t / 24) + 0.4 * np.cos(4 * np.pi * t / 24)
    week = 0.5 * (((t // 24) % 7) < 5)
    drift = np.cumsum(rng.normal(0, 0.02, hours))
    spikes = (rng.random(hours) < 0.02) * rng.uniform(2.0, 6.0, hours)
    return (day + week + drift + spikes + rng.normal(0, 0.1, hours)).astype("float32")


def cut(values, history, horizon):
    count = len(values) - history - horizon + 1
    x = np.stack([values[i:i + history] for i in range(count)])
    y = np.stack([values[i + history:i + history + horizon] for i in range(count)])
    return Windows(x[..., None], y)


def rolling_folds(windows, folds, held):
    """Each fold trains on everything before its held-out block."""
    first = len(windows) - folds * held
    for fold in range(folds):
        end = first + fold * held
        yield windows.part(0, end), windows.part(end, end + held)
