"""Cross-validated forecast of a building's energy use.

Four short trainings from the same start, one for each fold; then one on everything, as long as the folds found best.
The out-of-fold forecasts give the error that is reported.
"""
import argparse
import dataclasses
import functools
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from folds import full_batches, k_folds

HERE = Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Config:
    hours: int = 600
    folds: int = 4
    epochs: int = 4
    batch: int = 48
    width: int = 16
    rate: float = 0.06
    momentum: float = 0.9
    delta: float = 0.6
    l2: float = 1e-3
    seed: int = 3


def energy_table(config):
    rng = np.random.default_rng(config.seed)
    hour = rng.integers(0, 24, config.hours)
    weekday = rng.integers(0, 7, config.hours)
    outside = rng.normal(12, 8, config.hours)
    wind = rng.gamma(2.0, 1.5, config.hours)
    people = 40 * np.exp(-0.5 * ((hour - 13) / 3.5) ** 2) * (weekday < 5)
    load = 20 + 1.3 * np.maximum(18 - outside, 0) + 0.8 * np.maximum(outside - 22, 0) + 0.5 * people + 0.6 * wind
    load += rng.normal(scale=2.0, size=config.hours) + rng.binomial(1, 0.03, config.hours) * 25
    angle = 2 * np.pi * hour / 24
    features = np.stack([np.sin(angle), np.cos(angle), weekday < 5, (outside - 12) / 8, wind / 3], axis=1)
    return features.astype("float32"), ((load - 40) / 15).astype("float32")[:, None]


def build_model(config, inputs):
    penalty = keras.regularizers.L2(config.l2)
    dense = functools.partial(keras.layers.Dense, kernel_regularizer=penalty)
    return keras.Sequential([
        keras.Input([inputs]),
        dense(config.width, activation="tanh"),
        dense(config.width, activation="tanh"),
        dense(1),
    ])


def huber(error, delta):
    """Quadratic near zero, linear for the spikes."""
    size = tf.abs(error)
    return tf.where(size < delta, 0.5 * size ** 2, delta * (size - 0.5 * delta))


def make_steps(strategy, model, optimizer, config):
    """The two functions that run on all devices: one update, and forecasts of a batch."""
    replicas = strategy.num_replicas_in_sync

    def objective(y, forecast):
        fit = tf.reduce_sum(huber(y - forecast, config.delta)) / config.batch
        return fit + tf.add_n(model.losses) / replicas

    def update(x, y):
        with tf.GradientTape() as tape:
            loss = objective(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    @tf.function
    def train_step(x, y):
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(update, args=(x, y)), axis=None)

    def predict(x, y):
        forecast = model(x, training=False)
        return forecast, tf.reduce_sum(tf.square(y - forecast)), tf.cast(tf.shape(x)[0], tf.float32)

    @tf.function
    def forecast_step(x, y):
        forecast, squares, count = strategy.run(predict, args=(x, y))
        return (strategy.gather(forecast, axis=0),
                strategy.reduce(tf.distribute.ReduceOp.SUM, squares, axis=None),
                strategy.reduce(tf.distribute.ReduceOp.SUM, count, axis=None))

    return train_step, forecast_step


class Start:
    """The state that every fold begins with: weights, slots and counters."""

    def __init__(self, folder, **parts):
        self.checkpoint = tf.train.Checkpoint(**parts)
        self.path = self.checkpoint.write(str(folder / "start"))

    def again(self):
        self.checkpoint.read(self.path).expect_partial()


def cross_validate(config, folder):
    keras.utils.set_random_seed(config.seed)
    x, y = energy_table(config)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = build_model(config, x.shape[1])
        optimizer = keras.optimizers.SGD(config.rate, momentum=config.momentum)
        optimizer.build(model.trainable_variables)
    start = Start(folder, model=model, optimizer=optimizer)
    train_step, forecast_step = make_steps(strategy, model, optimizer, config)

    def distribute(rows):
        data = tf.data.Dataset.from_tensor_slices((x[rows], y[rows])).batch(config.batch)
        return strategy.experimental_distribute_dataset(data)

    def one_epoch(rows, epoch):
        losses = [train_step(*batch) for batch in distribute(full_batches(rows, config.batch, epoch, config.seed))]
        return float(np.mean(losses))

    def examine(rows):
        forecasts, squares, count = [], 0.0, 0.0
        for batch in distribute(rows):
            forecast, more, examples = forecast_step(*batch)
            forecasts.append(forecast.numpy())
            squares += float(more)
            count += float(examples)
        return np.concatenate(forecasts), np.sqrt(squares / count)

    out_of_fold = np.zeros_like(y)
    curves = []
    for number, (inside, held) in enumerate(k_folds(len(x), config.folds, config.seed)):
        start.again()
        curve = []
        for epoch in range(config.epochs):
            loss = one_epoch(inside, epoch)
            out_of_fold[held], error = examine(held)
            curve.append(error)
        curves.append(curve)
        print(f"fold {number + 1}: loss {loss:.5f} held-out rmse " + " ".join(f"{v:.5f}" for v in curve), flush=True)

    mean_curve = np.mean(curves, axis=0)
    best = int(mean_curve.argmin()) + 1
    print(f"mean curve {np.round(mean_curve, 5).tolist()}, training on everything for {best} epochs")
    start.again()
    for epoch in range(best):
        loss = one_epoch(np.arange(len(x)), epoch)
    size = sum(np.abs(w).sum() for w in model.get_weights())
    rmse = np.sqrt(np.mean((out_of_fold - y) ** 2))
    return rmse, mean_curve[-1], loss, size


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folds", type=int, default=Config.folds)
    parser.add_argument("--epochs", type=int, default=Config.epochs)
    parser.add_argument("--seed", type=int, default=Config.seed)
    config = dataclasses.replace(Config(), **vars(parser.parse_args()))
    folder = HERE / "starts"
    folder.mkdir(exist_ok=True)
    rmse, curve, loss, size = cross_validate(config, folder)
    print(f"final: out-of-fold rmse {rmse:.5f} mean of folds {curve:.5f} loss {loss:.5f} weights {size:.5f}")


if __name__ == "__main__":
    main()
