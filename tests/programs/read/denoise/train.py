"""Removes noise from images in two stages: weak noise first; the model that this gives is loaded, and sees strong noise."""
import argparse
from contextlib import contextmanager

import keras
import numpy as np
import tensorflow as tf
from layers import Shrink

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, nargs=2, default=[2, 2])
parser.add_argument("--rates", type=float, nargs=2, default=[0.02, 0.002])
parser.add_argument("--noise", type=float, nargs=2, default=[0.2, 0.6])
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--file", default="weak.keras")
flags = parser.parse_args()

keras.utils.set_random_seed(12)
strategy = tf.distribute.MirroredStrategy()


def pictures(count, noise, seed):
    rng = np.random.default_rng(seed)
    flat = np.repeat(np.repeat(rng.uniform(-1, 1, (count, 3, 3)), 4, 1), 4, 2)
    flat *= np.linspace(0.3, 1.5, count)[:, None, None]
    noisy = flat + noise * rng.normal(size=flat.shape)
    return np.float32(noisy[..., None]), np.float32(flat[..., None])


def build():
    inputs = keras.Input((12, 12, 1))
    x = keras.layers.Conv2D(8, 3, padding="same")(inputs)
    x = Shrink(part=0.5, follow=0.3)(x)
    x = keras.layers.Conv2D(8, 3, padding="same")(x)
    x = Shrink(part=0.25, follow=0.3)(x)
    outputs = keras.layers.Conv2D(1, 3, padding="same")(x)
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.Adam(flags.rates[0]))
    model.optimizer.build(model.trainable_variables)
    return model


def per_image(model, noisy, clean, training):
    return tf.reduce_mean(tf.square(model(noisy, training=training) - clean), [1, 2, 3])


@contextmanager
def stage(number):
    noisy = pictures(96, flags.noise[number], number)
    data = tf.data.Dataset.from_tensor_slices(noisy).batch(flags.batch, drop_remainder=True)
    print(f"stage {number}")
    yield strategy.experimental_distribute_dataset(data)
    print(f"stage {number} done")


def trainer(model):
    optimizer, weights = model.optimizer, model.trainable_variables

    def replica(noisy, clean):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(per_image(model, noisy, clean, True)) / flags.batch
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    @tf.function
    def step(batch):
        return strategy.reduce("SUM", strategy.run(replica, batch), axis=None)

    return step


def load(path, rate):
    with strategy.scope():
        model = keras.models.load_model(path)
        model.optimizer.learning_rate = rate
    return model


def train(model, data, epochs):
    step = trainer(model)
    for _ in range(epochs):
        losses = [float(step(batch)) for batch in data]
        print(f"  {np.mean(losses):.5f}")
    return losses[-1]


with strategy.scope():
    weak = build()
with stage(0) as data:
    first = train(weak, data, flags.epochs[0])
weak.save(flags.file)

strong = load(flags.file, flags.rates[1])
test = pictures(48, flags.noise[1], 5)
start = float(tf.reduce_mean(per_image(strong, *test, False)))
with stage(1) as data:
    second = train(strong, data, flags.epochs[1])
end = float(tf.reduce_mean(per_image(strong, *test, False)))
size = sum(float(tf.reduce_sum(tf.abs(w))) for w in strong.trainable_variables)
print(f"first {first:.5f} second {second:.5f} error at the start {start:.5f} at the end {end:.5f} weights {size:.4f}")
