"""Vibration of pumps in two plants. The old plant has many labels for the kind of fault, the new one few for the urgency."""
import numpy as np
import tensorflow as tf

BANDS, KINDS = 16, 5


def _spectra(rng, rows, shift):
    kind = rng.integers(0, KINDS, rows)
    severity = rng.uniform(0.1, 1.0, rows)
    bands = np.arange(BANDS)
    bump = np.exp(-0.5 * ((bands - (2 + 3 * kind[:, None] + shift)) / 1.2) ** 2)
    spectra = severity[:, None] * bump + rng.normal(0, 0.08, (rows, BANDS)) + 0.1 * shift
    return spectra.astype("float32"), kind, severity


def old_plant(config):
    spectra, kind, _ = _spectra(np.random.default_rng(config["seed"]), config["source_rows"], 0.0)
    return tf.data.Dataset.from_tensor_slices((spectra, kind)).batch(config["batch"])


def new_plant(config):
    rng = np.random.default_rng(config["seed"] + 1)
    rows = config["target_rows"] + config["test_rows"]
    spectra, kind, severity = _spectra(rng, rows, 0.6)
    urgency = np.float32(severity * np.array([0.2, 0.9, 0.4, 0.7, 0.5])[kind] + rng.normal(0, 0.02, rows))[:, None]
    parts = slice(config["target_rows"]), slice(config["target_rows"], None)
    return [tf.data.Dataset.from_tensor_slices((spectra[p], urgency[p])).batch(config["batch"]) for p in parts]
