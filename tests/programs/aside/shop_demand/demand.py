"""Demand of shops: a warm-up with squared errors, then the pinball loss of the 80 % quantile with a falling rate."""
import json
import math
from types import SimpleNamespace

import keras
import numpy as np
import tensorflow as tf

QUANTILE = 0.8


def read_settings(path="settings.json"):
    with open(path) as file:
        return SimpleNamespace(**json.load(file))


def sales(settings, seed):
    """Yields the days of all shops, one after the other, as from a file that is too large to read at once."""
    rng = np.random.default_rng(seed)
    size = np.random.default_rng(77).uniform(0.5, 2.0, settings.shops)
    for day in range(settings.days):
        season, sunday = math.sin(2 * math.pi * day / 48), day % 7 == 6
        for shop in range(settings.shops):
            price = rng.normal()
            demand = size[shop] * (2.0 + season - 0.5 * price + 0.8 * sunday + 0.5 * rng.exponential())
            features = [season, math.cos(2 * math.pi * day / 48), price, float(sunday), 1.0]
            yield np.float32(features), np.int32(shop), np.float32([demand])


def batches(settings, seed, limit=None):
    rows = []
    for number, row in enumerate(sales(settings, seed)):
        if limit is not None and number == limit:
            break
        rows.append(row)
        if len(rows) == settings.batch:
            features, shop, demand = (np.stack(column) for column in zip(*rows))
            yield {"features": features, "shop": shop}, demand
            rows = []


def dataset(settings, seed, limit=None):
    signature = (
        {"features": tf.TensorSpec((settings.batch, 5)), "shop": tf.TensorSpec((settings.batch,), tf.int32)},
        tf.TensorSpec((settings.batch, 1)))
    return tf.data.Dataset.from_generator(lambda: batches(settings, seed, limit), output_signature=signature)


def make_model(settings):
    draw = lambda seed: keras.initializers.GlorotUniform(seed=seed)  # noqa: E731
    features, shop = keras.Input((5,), name="features"), keras.Input((), dtype="int32", name="shop")
    own = keras.layers.Embedding(settings.shops, 4, keras.initializers.RandomNormal(0, 0.3, seed=1))(shop)
    x = keras.layers.Concatenate()([features, own])
    x = keras.layers.Dense(16, activation="relu", kernel_initializer=draw(2))(x)
    return keras.Model({"features": features, "shop": shop}, keras.layers.Dense(1, kernel_initializer=draw(3))(x))


def pinball(demand, forecast):
    error = demand - forecast
    return tf.reduce_mean(tf.maximum(QUANTILE * error, (QUANTILE - 1.0) * error), axis=-1)


def covered(demand, forecast):
    """1 where the demand is at most the forecast."""
    return tf.reduce_mean(tf.cast(demand <= forecast, tf.float32), axis=-1)


class Progress(keras.callbacks.Callback):
    def __init__(self, phase):
        super().__init__()
        self.phase, self.losses = phase, []

    def on_epoch_end(self, epoch, logs=None):
        self.losses.append(logs["loss"])
        print(f"{self.phase} {epoch + 1}: loss {logs['loss']:.5f}")


def main():
    settings = read_settings()
    train = dataset(settings, settings.seed).repeat()
    test = dataset(settings, settings.seed + 1, limit=10 * settings.batch)
    strategy = tf.distribute.MirroredStrategy()

    warm = Progress("warm-up")
    with strategy.scope():
        model = make_model(settings)
        model.compile(keras.optimizers.SGD(settings.warm_rate, momentum=0.9), loss="mse")
    model.fit(train, steps_per_epoch=settings.steps, epochs=settings.warm_epochs, callbacks=[warm], verbose=0)
    model.save_weights("warm.weights.h5")

    main_phase = Progress("main")
    schedule = keras.optimizers.schedules.ExponentialDecay(settings.main_rate, settings.steps // 2, settings.decay)
    with strategy.scope():
        model = make_model(settings)
        model.load_weights("warm.weights.h5")
        model.compile(keras.optimizers.SGD(schedule, momentum=0.9), loss=pinball, metrics=[covered])
    model.fit(train, steps_per_epoch=settings.steps, epochs=settings.main_epochs, callbacks=[main_phase], verbose=0)

    loss, share = model.evaluate(test, verbose=0)
    steps = int(model.optimizer.iterations.numpy())
    rate = float(keras.ops.convert_to_numpy(schedule(steps)))
    size = sum(float(np.abs(w.numpy()).sum()) for w in model.trainable_variables)
    print(f"warm-up {warm.losses[-1]:.5f} main {main_phase.losses[-1]:.5f} test {loss:.5f} covered {share:.4f} "
          f"rate {rate:.5f} weights {size:.4f}")


if __name__ == "__main__":
    main()
