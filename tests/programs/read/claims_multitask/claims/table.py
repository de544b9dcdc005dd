import dataclasses

import numpy as np
import tensorflow as tf

NUMBERS, CODES = 6, 15


@dataclasses.dataclass
class Claims:
    inputs: dict
    targets: dict

    def dataset(self, batch):
        data = tf.data.Dataset.from_tensor_slices((self.inputs, self.targets))
        return data.batch(batch, drop_remainder=True).cache()


def draw(count, seed):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(count, NUMBERS)).astype("float32")
    code = rng.integers(0, CODES, count).astype("int32")
    risk = numbers[:, 0] + 0.8 * np.sin(code) - 0.5 + rng.logistic(0, 0.8, count)
    amount = 1.0 + 0.5 * numbers[:, 1] + 0.2 * (code % 4) + np.abs(numbers[:, 2]) + rng.normal(0, 0.6, count)
    return Claims(
        {"numbers": numbers, "code": code},
        {"fraud": (risk > 0).astype("float32")[:, None], "amount": amount.astype("float32")[:, None]},
    )
