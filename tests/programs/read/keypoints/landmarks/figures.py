"""Stick figures with joints, some of which are hidden behind a block."""
import numpy as np
import tensorflow as tf


def draw_figures(settings, count, seed):
    """Pictures, joint positions in [0, 1] and which joints can be seen. Later figures hide more."""
    rng = np.random.default_rng(seed)
    side, joints = settings.side, settings.joints
    y, x = np.mgrid[:side, :side] / (side - 1)
    pictures = rng.normal(0, 0.03, (count, side, side, 1))
    positions = np.empty((count, joints, 2))
    visible = np.empty((count, joints))
    for i in range(count):
        start, turn = rng.uniform(0.25, 0.75, 2), rng.uniform(0, 2 * np.pi)
        angles = turn + np.arange(joints) * 2 * np.pi / joints + rng.uniform(-0.3, 0.3, joints)
        reach = rng.uniform(0.15, 0.24, joints)
        positions[i] = start + np.stack([np.sin(angles), np.cos(angles)], axis=1) * reach[:, None]
        visible[i] = rng.uniform(size=joints) > 0.1 + 0.5 * i / count
        for j, (py, px) in enumerate(positions[i]):
            spot = (1 + j) / joints * np.exp(-((y - py) ** 2 + (x - px) ** 2) / 0.006)
            pictures[i, ..., 0] += spot * visible[i, j]
    return tuple(a.astype("float32") for a in (pictures, positions, visible))


class FigureFeed:
    def __init__(self, settings, strategy):
        self.settings = settings
        self.strategy = strategy
        self.train = draw_figures(settings, settings.figures, settings.seed)
        self.test = draw_figures(settings, settings.held_out, settings.seed + 1)

    def _spread(self, arrays):
        data = tf.data.Dataset.from_tensor_slices(arrays)
        data = data.batch(self.settings.global_batch, drop_remainder=True)
        return self.strategy.experimental_distribute_dataset(data)

    def epoch(self, number):
        order = np.random.default_rng([self.settings.seed, number]).permutation(self.settings.figures)
        return self._spread(tuple(a[order] for a in self.train))

    def held_out(self):
        return self._spread(self.test)
