from __future__ import annotations

import numpy as np
import tensorflow as tf


class Cohort:
    """Patients of several clinics: covariates, days until the event or the last visit, whether the event happened."""

    def __init__(self, patients: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(patients, 7)).astype("float32")
        hazard = np.exp(0.9 * self.x[:, 0] - 0.7 * self.x[:, 1] * self.x[:, 2] + 0.4 * np.abs(self.x[:, 3]))
        event, censored = rng.exponential(300 / hazard), rng.exponential(400, patients)
        self.days = np.minimum(event, censored).astype("float32")
        self.happened = (event < censored).astype("float32")

    def by_clinic(self) -> "Cohort":
        order = np.lexsort((self.days, np.arange(len(self.days)) // 60))
        self.x, self.days, self.happened = self.x[order], self.days[order], self.happened[order]
        return self

    def __len__(self) -> int:
        return len(self.days)

    def batches(self, size: int) -> tf.data.Dataset:
        return tf.data.Dataset.from_tensor_slices((self.x, self.days, self.happened)).batch(size, drop_remainder=True)

    def concordance(self, risk: np.ndarray) -> float:
        earlier = (self.days[:, None] < self.days[None]) & (self.happened[:, None] > 0)
        return float(((risk[:, None] > risk[None]) & earlier).sum() / earlier.sum())
