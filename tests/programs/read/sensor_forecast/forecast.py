"""Quantile forecasts of sensor series; learning rate lowered on plateaus and stopping, both by hand.

Started again it goes on from run/state.npz and the checkpoint that this file names.
"""
import os
from dataclasses import dataclass, field
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

RUN = Path(__file__).resolve().parent / "run"
QUANTILES = (0.1, 0.5, 0.9)


@dataclass
class Config:
    epochs: int = 9
    global_batch: int = 32
    rate: float = 0.2
    past: int = 12
    ahead: int = 3
    patience: int = 1
    stop_after: int = 3
    seed: int = 17


@dataclass
class Plateau:
    """Halves the rate when the validation loss has not fallen for `patience` epochs."""
    patience: int
    rate: float
    best: float = np.inf
    waited: int = 0
    lowered: int = 0
    remembered: tuple = field(default=("rate", "best", "waited", "lowered"), repr=False)

    def look(self, value):
        if value < self.best - 1e-4:
            self.best, self.waited = value, 0
        else:
            self.waited += 1
            if self.waited >= self.patience:
                self.rate, self.waited, self.lowered = self.rate * 0.5, 0, self.lowered + 1

    def facts(self):
        return {name: getattr(self, name) for name in self.remembered}

    def take(self, facts):
        for name in self.remembered:
            setattr(self, name, type(getattr(self, name))(facts[name]))


def series(config, length=330):
    rng = np.random.default_rng(config.seed)
    t = np.arange(length)
    value = np.sin(t / 4.0) + 0.5 * np.sin(t / 11.0 + 1.0) + 0.01 * t / 3 + 0.25 * rng.normal(size=length)
    windows = np.lib.stride_tricks.sliding_window_view(value, config.past + config.ahead).astype("float32")
    x, y = windows[:, :config.past, None], windows[:, config.past:]
    return (x[:192], y[:192]), (x[210:306], y[210:306])


def network(config):
    he = keras.initializers.HeNormal
    return keras.Sequential([
        keras.layers.Conv1D(12, 4, activation="relu", kernel_initializer=he(seed=1)),
        keras.layers.Conv1D(12, 4, strides=2, activation="relu", kernel_initializer=he(seed=2)),
        keras.layers.Flatten(),
        keras.layers.Dense(config.ahead * len(QUANTILES), kernel_initializer=he(seed=3)),
        keras.layers.Reshape((config.ahead, len(QUANTILES)))])


def pinball(y, forecast):
    error = y[..., None] - forecast
    q = tf.constant(QUANTILES)
    return tf.reduce_mean(tf.maximum(q * error, (q - 1.0) * error), axis=[1, 2])


class Forecaster:
    def __init__(self, config):
        self.config = config
        self.strategy = tf.distribute.MirroredStrategy()
        with self.strategy.scope():
            self.model = network(config)
            self.model.build((None, config.past, 1))
            self.optimizer = keras.optimizers.SGD(config.rate, momentum=0.9)
            self.optimizer.build(self.model.trainable_variables)
            self.level = tf.Variable(0.0, trainable=False)
        self.plateau = Plateau(config.patience, config.rate)
        self.epoch = self.since_best = 0
        self.order = np.random.default_rng(config.seed)
        self.train, self.valid = series(config)

    def tensors(self):
        kinds = (keras.Model, keras.optimizers.Optimizer, tf.Variable)
        return tf.train.Checkpoint(**{name: value for name, value in vars(self).items() if isinstance(value, kinds)})

    # ---- disk ----
    def save(self):
        path = self.tensors().write(str(RUN / f"epoch{self.epoch}"))
        part = RUN / "part.npz"
        np.savez(part, tensors=path, epoch=self.epoch, since_best=self.since_best, **self.plateau.facts())
        os.replace(part, RUN / "state.npz")

    def load(self):
        RUN.mkdir(exist_ok=True)
        if not (RUN / "state.npz").exists():
            return
        with np.load(RUN / "state.npz") as facts:
            self.epoch, self.since_best = int(facts["epoch"]), int(facts["since_best"])
            self.plateau.take(facts)
            self.tensors().read(str(facts["tensors"])).assert_existing_objects_matched()
        for _ in range(self.epoch):
            self.order.permutation(len(self.train[0]))
        print(f"state of epoch {self.epoch}, rate {self.plateau.rate:.4f}")

    # ---- steps ----
    def replica_loss(self, x, y):
        return tf.reduce_sum(pinball(y - self.level, self.model(x - self.level))) / self.config.global_batch

    def replica_step(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.replica_loss(x, y)
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return loss

    def on_devices(self, function):
        @tf.function
        def step(x, y):
            return self.strategy.reduce("SUM", self.strategy.run(function, args=(x, y)), axis=None)

        return step

    def batches(self, x, y):
        data = tf.data.Dataset.from_tensor_slices((x, y)).batch(self.config.global_batch, drop_remainder=True)
        return self.strategy.experimental_distribute_dataset(data)

    def cycle(self, n, steps):
        """Within an epoch the rate falls to a third."""
        return self.plateau.rate * (1.0 - 2.0 * n / (3.0 * steps))

    def run(self):
        self.load()
        learn, judge = self.on_devices(self.replica_step), self.on_devices(self.replica_loss)
        steps = len(self.train[0]) // self.config.global_batch
        while self.epoch < self.config.epochs and self.since_best < self.config.stop_after:
            rows = self.order.permutation(len(self.train[0]))
            x, y = (part[rows] for part in self.train)
            losses = []
            for n, batch in enumerate(self.batches(x, y)):
                self.optimizer.learning_rate.assign(self.cycle(n, steps))
                losses.append(float(learn(*batch)))
            self.level.assign(0.8 * self.level + 0.2 * float(x.mean()))
            valid = float(np.mean([float(judge(*batch)) for batch in self.batches(*self.valid)]))
            self.since_best = 0 if valid < self.plateau.best else self.since_best + 1
            self.plateau.look(valid)
            self.epoch += 1
            print(f"epoch {self.epoch}: train {np.mean(losses):.5f} valid {valid:.5f} rate {self.plateau.rate:.4f}")
            self.save()
        final = float(np.mean([float(judge(*batch)) for batch in self.batches(*self.valid)]))
        weights = sum(float(np.abs(w).sum()) for w in self.model.get_weights())
        print(f"final valid {final:.6f} best {self.plateau.best:.6f} rate {self.plateau.rate:.6f} weights {weights:.5f}")


if __name__ == "__main__":
    Forecaster(Config()).run()
