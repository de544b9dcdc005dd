"""Transitions of a cart on a rail: it is rewarded near the middle, and pushed left or right."""
import numpy as np
import tensorflow as tf

FEATURES, PUSHES = 3, 2


def transitions(count: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    place, speed = rng.uniform(-1, 1, count), rng.uniform(-0.5, 0.5, count)
    push = rng.integers(0, PUSHES, count)
    faster = speed + np.where(push == 1, 0.3, -0.3)
    where = np.clip(place + 0.5 * faster, -1.2, 1.2)
    order = np.argsort(place, kind="stable").reshape(-1, count // 8).T.ravel()
    found = {
        "state": np.stack([place, speed, place * speed], -1),
        "push": push,
        "reward": 1 - np.abs(where),
        "next": np.stack([where, faster, where * faster], -1),
        "over": np.abs(where) > 1,
        "number": np.arange(count),
    }
    return {name: np.asarray(value[order], "int32" if name in ("push", "number") else "float32") for name, value in found.items()}


def blurred(noise: float):
    """Adds to each state noise of its own, which depends on the number of the transition."""

    def blur(one):
        drawn = tf.random.stateless_normal((FEATURES,), seed=[one["number"], 7])
        return {**one, "state": one["state"] + noise * drawn}

    return blur


def dataset(count: int, seed: int, batch: int, noise: float) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(transitions(count, seed)).map(blurred(noise)).batch(batch)
