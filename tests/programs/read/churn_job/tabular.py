"""Synthetic customer table: a few categorical columns, a few numeric ones, one binary target."""
import numpy as np
import tensorflow as tf

CATEGORICAL = {"plan": 5, "region": 9, "channel": 4}
NUMERIC = ("tenure", "monthly_fee", "tickets", "usage", "usage_change")


def _draw(rows, rng):
    table = {name: rng.integers(0, size, rows).astype("int32") for name, size in CATEGORICAL.items()}
    numeric = np.empty((rows, len(NUMERIC)), "float32")
    numeric[:, 0] = rng.gamma(2.0, 14.0, rows)
    numeric[:, 1] = 20.0 + 15.0 * table["plan"] + rng.normal(0, 4, rows)
    numeric[:, 2] = rng.poisson(1.2, rows)
    numeric[:, 3] = rng.lognormal(2.0, 0.6, rows)
    numeric[:, 4] = rng.normal(0, 1, rows)
    score = (-0.03 * numeric[:, 0] + 0.5 * numeric[:, 2] - 0.9 * numeric[:, 4]
             + 0.35 * (table["channel"] == 2) - 0.2 * table["plan"] + 0.3)
    table["numeric"] = numeric
    table["churned"] = (rng.random(rows) < 1 / (1 + np.exp(-score))).astype("float32")
    return table


def load(train_rows, valid_rows, seed):
    rng = np.random.default_rng(seed)
    train, valid = _draw(train_rows, rng), _draw(valid_rows, rng)
    mean, std = train["numeric"].mean(0), train["numeric"].std(0) + 1e-6
    for part in (train, valid):
        part["numeric"] = ((part["numeric"] - mean) / std).astype("float32")
    return train, valid


def _features(table):
    target = table["churned"]
    return {k: v for k, v in table.items() if k != "churned"}, target


def training_batches(table, batch, seed, epoch):
    """One epoch, whole batches only; the order is a function of (seed, epoch)."""
    order = np.random.default_rng([seed, epoch]).permutation(len(table["churned"]))
    shuffled = {k: v[order] for k, v in table.items()}
    return tf.data.Dataset.from_tensor_slices(_features(shuffled)).batch(batch, drop_remainder=True)


def validation_batches(table, batch):
    return tf.data.Dataset.from_tensor_slices(_features(table)).batch(batch)
