import numpy as np


def harbour(hours, seed=5):
    rng = np.random.default_rng(seed)
    t = np.arange(hours, dtype="float32")
    moon, sun = np.sin(2 * np.pi * t / 12.42), np.sin(2 * np.pi * t / 12.0 + 0.4)
    wind = np.convolve(rng.normal(size=hours + 9), np.ones(10) / 10, "valid")
    level = moon + 0.45 * sun + 1.2 * wind
    # a storm in the middle and in the end
    level[hours // 2:hours // 2 + 40] += 1.5
    level[-30:] -= np.linspace(0, 1.6, 30)
    return np.stack([level, wind], -1).astype("float32")


def windows(values, width, held_out=75):
    x = np.stack([values[i:i + width] for i in range(len(values) - width)])
    y = values[width:, 0]
    return (x[:-held_out], y[:-held_out]), (x[-held_out:], y[-held_out:])
