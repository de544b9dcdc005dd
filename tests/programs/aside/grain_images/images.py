"""Grey pictures of grains: round, long or broken; and, to learn from first, of bars and crosses."""
import numpy as np

SIZE = 12


def _grid():
    return np.meshgrid(np.linspace(-1, 1, SIZE), np.linspace(-1, 1, SIZE), indexing="ij")


def _noisy(rng, picture):
    return picture + 0.25 * rng.normal(size=picture.shape)


def shapes(count, seed):
    """Bars and crosses, half of each."""
    rng, (u, v) = np.random.default_rng(seed), _grid()
    kind = rng.integers(0, 2, count)
    rows = []
    for each in kind:
        angle, width = rng.uniform(0, np.pi), rng.uniform(0.1, 0.3)
        a, b = u * np.cos(angle) + v * np.sin(angle), v * np.cos(angle) - u * np.sin(angle)
        bar = np.abs(a) < width
        rows.append(_noisy(rng, 1.0 * (bar | (np.abs(b) < width) if each else bar)))
    return np.float32(rows)[..., None], np.int32(kind)


def grains(count, seed):
    """In the order of the trays: a tray holds more of one kind, and is lit in its own way."""
    rng, (u, v) = np.random.default_rng(seed), _grid()
    kind = np.sort(rng.integers(0, 3, count) + rng.integers(0, 2, count)) % 3
    rows = []
    for place, each in enumerate(kind):
        angle, long = rng.uniform(0, np.pi), rng.uniform(0.3, 0.5)
        a, b = u * np.cos(angle) + v * np.sin(angle), v * np.cos(angle) - u * np.sin(angle)
        grain = (a / long) ** 2 + (b / (long * (1.8 if each == 1 else 1.0))) ** 2 < 1
        if each == 2:
            grain &= a > rng.uniform(-0.1, 0.1)
        rows.append(_noisy(rng, grain * (0.6 + 0.8 * (place // 8 % 2))))
    return np.float32(rows)[..., None], np.int32(kind)
