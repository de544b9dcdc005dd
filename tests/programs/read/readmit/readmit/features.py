"""Raw admissions, and what the network gets of them."""
import keras
import numpy as np
import tensorflow as tf

WARDS = ["cardiology", "surgery", "oncology", "geriatrics", "orthopaedics", "emergency"]


def draw_admissions(rows, seed):
    rng = np.random.default_rng(seed)
    ward = rng.choice(WARDS, rows)
    zip_code = np.array([f"{n:05d}" for n in rng.integers(10_000, 10_060, rows)])
    age = rng.gamma(9.0, 6.5, rows).clip(18, 99).astype("float32")
    stay = rng.exponential(4.0, rows).astype("float32")
    labs = rng.normal([7.3, 140.0], [1.5, 12.0], (rows, 2)).astype("float32")
    risk = (0.03 * (age - 58) + 0.2 * (stay - 4) + 0.5 * (labs[:, 0] - 7.3)
            + 1.2 * np.isin(ward, ["cardiology", "geriatrics"]) - 1.2)
    back = (rng.random(rows) < 1 / (1 + np.exp(-2 * risk))).astype("float32")
    raw = {"ward": ward, "zip": zip_code, "age": age, "stay": stay, "labs": labs}
    return raw, back[:, None]


class Features:
    """Preprocessing layers that have seen the training rows, applied in the input pipeline."""

    def __init__(self, settings, raw):
        self.ward = keras.layers.StringLookup(vocabulary=WARDS, output_mode="one_hot")
        self.zip = keras.layers.Hashing(settings.zip_bins, salt=11)
        self.age = keras.layers.Discretization(bin_boundaries=[40.0, 55.0, 65.0, 75.0, 85.0], output_mode="one_hot")
        self.numbers = keras.layers.Normalization(axis=-1)
        self.numbers.adapt(self._columns(raw))

    @staticmethod
    def _columns(raw):
        return tf.concat([tf.math.log1p(raw["stay"])[:, None], raw["labs"]], axis=1)

    def __call__(self, raw):
        parts = [self.ward(raw["ward"]), self.age(raw["age"]), self.numbers(self._columns(raw))]
        return {"row": tf.concat([tf.cast(part, tf.float32) for part in parts], axis=1), "place": self.zip(raw["zip"])}

    def dataset(self, raw, labels, batch_size, shuffle_seed=None):
        data = tf.data.Dataset.from_tensor_slices((raw, labels))
        if shuffle_seed is not None:
            data = data.shuffle(len(labels), seed=shuffle_seed)
        data = data.batch(batch_size, drop_remainder=True)
        return data.map(lambda row, label: (self(row), label), num_parallel_calls=2).prefetch(tf.data.AUTOTUNE)
