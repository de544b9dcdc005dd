"""Two weeks of use of a service and the number of support calls in the week after."""
import numpy as np
import tensorflow as tf

DAYS, SIGNALS, PLANS = 14, 3, 5


def customers(count, seed, drift=0.0):
    """`drift` moves the newer customers away from the older ones."""
    rng = np.random.default_rng(seed)
    plan = rng.integers(0, PLANS, count).astype("int32")
    use = rng.gamma(2.0, 0.5, (count, DAYS, SIGNALS)).astype("float32")
    trouble = rng.random((count, DAYS)) < 0.15
    use[..., 2] += 2.0 * trouble
    late = np.linspace(0.3, 1.0, DAYS)
    log_rate = (-0.6 + 0.5 * (trouble * late).sum(1) - 0.3 * (use[..., 0].mean(1) - 1.0)
                + (0.15 + drift) * (plan - 2) + drift)
    calls = rng.poisson(np.exp(np.clip(log_rate, -3, 2))).astype("float32")
    return {"use": use, "plan": plan}, calls[:, None]


def stream(data, batch, seed=None, endless=False):
    result = tf.data.Dataset.from_tensor_slices(data)
    if seed is not None:
        result = result.shuffle(2048, seed=seed)
    result = result.batch(batch, drop_remainder=seed is not None)
    return result.repeat() if endless else result
