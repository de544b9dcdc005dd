"""Stereo sound in a few codes: the left and the right channel go through the same encoder."""
from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from book import Codebook

BATCH: int = 36
PASSES: int = 4


def sound(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    kinds = np.random.default_rng(0).normal(size=(6, 12))
    kind = np.sort(rng.integers(0, 6, rows))
    middle = kinds[kind] + 0.2 * rng.normal(size=(rows, 12))
    side = 0.4 * np.roll(kinds, 1, 0)[kind]
    return (middle + side).astype("float32"), (middle - side).astype("float32")


def encoder() -> keras.Sequential:
    he = keras.initializers.HeUniform
    return keras.Sequential([keras.Input((12,)), keras.layers.Dense(16, "relu", kernel_initializer=he(1)),
                             keras.layers.Dense(4, kernel_initializer=he(2))])


class Stereo(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = [encoder()] * 2
        self.book = Codebook(8, 4)
        self.decoder = keras.layers.Dense(24, kernel_initializer=keras.initializers.HeUniform(3))

    def call(self, sides, training=False):
        left, right = sides
        one, miss_one = self.book(self.left(left), training=training)
        two, miss_two = self.book(self.right(right), training=training)
        return self.decoder(tf.concat([one, two], -1)), miss_one + miss_two


strategy = tf.distribute.MirroredStrategy()
replicas: int = strategy.num_replicas_in_sync
with strategy.scope():
    model = Stereo()
    model((tf.zeros((1, 12)), tf.zeros((1, 12))))
    optimizer = keras.optimizers.SGD(0.002, momentum=0.8)
    optimizer.build(model.trainable_variables)


def learn(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        heard, miss = model((left, right), training=True)
        error = tf.reduce_sum(tf.square(heard - tf.concat([left, right], -1)), -1)
        loss = tf.reduce_mean(error + 0.25 * miss) / replicas  # the parts of a batch are of one size
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


@tf.function
def step(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    return strategy.reduce("SUM", strategy.run(learn, args=(left, right)), axis=None)


data = tf.data.Dataset.from_tensor_slices(sound(360, 1)).batch(BATCH, drop_remainder=True)
spread = strategy.experimental_distribute_dataset(data)
for number in range(PASSES):
    losses = [float(step(left, right)) for left, right in spread]
    print(f"pass {number}: {sum(losses) / len(losses):.4f}")

sides = sound(60, 2)
heard, miss = model(sides)
error = np.square(heard.numpy() - np.concatenate(sides, -1)).sum(-1).mean()
usage = model.book.usage.numpy()
print(f"final loss {losses[-1]:.4f} error {error:.4f} miss {miss.numpy().mean():.4f} usage {usage:.4f} "
      f"table {np.abs(model.book.table.numpy()).sum():.4f} weights {sum(np.abs(w.numpy()).sum() for w in model.trainable_variables):.4f}")
