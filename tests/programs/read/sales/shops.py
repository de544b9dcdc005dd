"""Weekly sales of shops, and a network that reads the last weeks and the weeks of a year ago with the same layers."""
import keras
import numpy as np
import tensorflow as tf

SHOPS, WEEKS = 12, 8
SIGNATURE = (
    {
        "shop": tf.TensorSpec((None,), tf.int32),
        "recent": tf.TensorSpec((None, WEEKS), tf.float32),
        "last_year": tf.TensorSpec((None, WEEKS), tf.float32),
    },
    tf.TensorSpec((None, 1), tf.float32),
)


def table(rows, seed, growth=0.0):
    rng = np.random.default_rng(seed)
    shop = rng.integers(0, SHOPS, rows)
    level = np.random.default_rng(0).normal(size=SHOPS)[shop][:, None]
    season = rng.uniform(0, 2 * np.pi, (rows, 1))
    weeks = np.arange(WEEKS + 1) / 3
    curve = level + np.sin(season + weeks)
    now = curve * (1 + growth) + 0.5 * rng.normal(size=curve.shape)
    before = curve + 0.5 * rng.normal(size=curve.shape)
    inputs = {"shop": shop.astype("int32"), "recent": now[:, :-1].astype("float32"), "last_year": before[:, 1:].astype("float32")}
    return inputs, now[:, -1:].astype("float32")


def batches_of(inputs, sold, size):
    """Returns a function that makes a generator, as a reader of files would."""

    def read():
        for begin in range(0, len(sold), size):
            part = slice(begin, begin + size)
            yield {name: column[part] for name, column in inputs.items()}, sold[part]

    return read


def forecaster(units=24):
    he = keras.initializers.HeUniform
    shop = keras.Input((), dtype="int32", name="shop")
    recent, last_year = (keras.Input((WEEKS,), name=name) for name in ("recent", "last_year"))
    reader = keras.Sequential([keras.layers.Dense(units, "relu", kernel_initializer=he(61)),
                               keras.layers.Dense(units, "relu", kernel_initializer=he(62))], name="reader")
    of_shop = keras.layers.Embedding(SHOPS, 4, embeddings_initializer=keras.initializers.RandomNormal(0, 0.1, seed=63))(shop)
    both = keras.layers.Concatenate()([reader(recent), reader(last_year), of_shop])
    sold = keras.layers.Dense(1, kernel_initializer=he(64))(both)
    return keras.Model({"shop": shop, "recent": recent, "last_year": last_year}, sold)
