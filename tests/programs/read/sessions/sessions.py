"""What is looked at next? A small causal mixer over sessions of several lengths; stops early, and goes on after a stop.

The rolling checkpoint in `run/last` holds all that the training needs; `run/best` holds the network that is evaluated.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

ITEMS, LENGTH, WIDTH, DEPTH = 24, 8, 12, 2
BATCH, EPOCHS, PATIENCE = 16, 9, 2
HOME = Path("run")


# The sessions. Item 0 is padding.


def walks(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the items of each session but the last, and those that follow; the short sessions come first."""
    rng = np.random.default_rng(seed)
    lengths = np.sort(rng.integers(2, LENGTH + 1, rows))
    items = np.zeros((rows, LENGTH + 1), "int32")
    items[:, 0] = rng.integers(1, ITEMS, rows)
    for place in range(1, LENGTH + 1):
        jump = np.where(rng.random(rows) < 0.7, 3, rng.integers(1, 9, rows))
        items[:, place] = 1 + (items[:, place - 1] + jump) % (ITEMS - 1)
    items[np.arange(LENGTH + 1)[None] > lengths[:, None]] = 0
    return items[:, :-1], items[:, 1:]


def pipeline(rows: int, seed: int) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(walks(rows, seed)).batch(BATCH, drop_remainder=True)


# The network


class Mixer(keras.layers.Layer):
    """Adds to each place what was before it."""

    def __init__(self, width: int, seed: int) -> None:
        super().__init__()
        start = keras.initializers.GlorotUniform(seed)
        self.before = keras.layers.Conv1D(width, 2, padding="causal", activation="tanh", kernel_initializer=start)
        self.norm = keras.layers.LayerNormalization()

    def build(self, shape) -> None:
        self.before.build(shape)
        self.norm.build(shape)

    def call(self, x):
        return self.norm(x + self.before(x))


class Network(keras.Model):
    def __init__(self, depth: int = DEPTH) -> None:
        super().__init__()
        self.items = keras.layers.Embedding(ITEMS, WIDTH, keras.initializers.RandomNormal(0, 0.5, seed=1))
        self.mixers = tuple(Mixer(WIDTH, 10 + number) for number in range(depth))
        self.out = keras.layers.Dense(ITEMS, kernel_initializer=keras.initializers.GlorotUniform(2))

    def call(self, items):
        x = self.items(items)
        for mixer in self.mixers:
            x = mixer(x)
        return self.out(x)

    @classmethod
    def built(cls, **options) -> Network:
        network = cls(**options)
        network(tf.zeros((1, LENGTH), tf.int32))
        return network


# The training


class Patience(tf.Module):
    """The best loss so far, and for how many epochs there was no better one."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit
        self.best = tf.Variable(np.inf, trainable=False, dtype=tf.float32)
        self.waited = tf.Variable(0, trainable=False)

    def better(self, loss: float) -> bool:
        improved = loss < self.best.numpy()
        self.waited.assign(0 if improved else self.waited + 1)
        if improved:
            self.best.assign(loss)
        return bool(improved)

    @property
    def ended(self) -> bool:
        return int(self.waited.numpy()) >= self.limit


def on_replicas(strategy: tf.distribute.Strategy) -> Callable:
    """Decorates a function of a batch: it runs on all replicas, and the parts that it returns are added."""

    def decorate(function: Callable) -> Callable:
        @tf.function
        @functools.wraps(function)
        def everywhere(items, following):
            parts = strategy.run(function, args=(items, following))
            return strategy.reduce(tf.distribute.ReduceOp.SUM, parts, axis=None)

        return everywhere

    return decorate


def masked_sum(network: Network, items: tf.Tensor, following: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the sum of the losses where something follows, and at how many places it does."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(following, network(items))
    mask = tf.cast(following > 0, tf.float32)
    return tf.reduce_sum(losses * mask), tf.reduce_sum(mask)


def everywhere_sum(value: tf.Tensor) -> tf.Tensor:
    replica = tf.distribute.get_replica_context()
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, value)


class Training:
    def __init__(self, strategy: tf.distribute.Strategy) -> None:
        self.strategy = strategy
        with strategy.scope():
            self.network = Network.built()
            self.optimizer = keras.optimizers.Adam(0.12)
            self.optimizer.build(self.network.trainable_variables)
            self.epoch = tf.Variable(0, trainable=False)
        self.patience = Patience(PATIENCE)
        state = tf.train.Checkpoint(network=self.network, optimizer=self.optimizer,
                                    patience=self.patience, epoch=self.epoch)
        self.last = tf.train.CheckpointManager(state, str(HOME / "last"), max_to_keep=2)
        self.best = tf.train.CheckpointManager(tf.train.Checkpoint(network=self.network), str(HOME / "best"), 1)
        self.step = on_replicas(strategy)(self.learn)
        self.evaluate = evaluator(strategy, self.network)

    def learn(self, items: tf.Tensor, following: tf.Tensor) -> tf.Tensor:
        weights = self.network.trainable_variables
        with tf.GradientTape() as tape:
            total, count = masked_sum(self.network, items, following)
            loss = total / everywhere_sum(count)
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    def epochs(self, training: tf.data.Dataset, validation: tf.data.Dataset) -> Iterator[tuple[float, float]]:
        self.last.restore_or_initialize()
        spread = self.strategy.experimental_distribute_dataset(training)
        while self.epoch.numpy() < EPOCHS and not self.patience.ended:
            losses = [float(self.step(*batch)) for batch in spread]
            loss = self.evaluate(validation)
            if self.patience.better(loss):
                self.best.save()
            self.epoch.assign_add(1)
            self.last.save()
            yield float(np.mean(losses)), loss


def evaluator(strategy: tf.distribute.Strategy, network: Network) -> Callable[[tf.data.Dataset], float]:
    @on_replicas(strategy)
    def sums(items, following):
        return tf.stack(masked_sum(network, items, following))

    def evaluate(data: tf.data.Dataset) -> float:
        total, count = sum(sums(*batch).numpy() for batch in strategy.experimental_distribute_dataset(data))
        return float(total / count)

    return evaluate


def best_network(strategy: tf.distribute.Strategy) -> Network:
    with strategy.scope():
        network = Network.built()
    path = tf.train.latest_checkpoint(str(HOME / "best"))
    tf.train.Checkpoint(network=network).restore(path).expect_partial()
    return network


def main() -> int:
    strategy = tf.distribute.MirroredStrategy()
    training = Training(strategy)
    validation = pipeline(64, 2)
    for loss, validated in training.epochs(pipeline(64, 1), validation):
        print(f"epoch {training.epoch.numpy()}: loss {loss:.4f} validation {validated:.4f}")
    chosen = evaluator(strategy, best_network(strategy))(validation)
    end = training.evaluate(validation)
    size = sum(float(tf.reduce_sum(tf.abs(each))) for each in training.network.trainable_variables)
    print(f"best {chosen:.4f} at the end {end:.4f} after {training.epoch.numpy()}.0 epochs weights {size:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
