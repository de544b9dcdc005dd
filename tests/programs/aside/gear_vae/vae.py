"""A variational autoencoder for the vibration of gears; what it cannot rebuild is a gear to look at.

The weight of the KL term (beta) grows from epoch to epoch. The noise is made with the data, so that a run can be repeated.
Start it again with the same --folder, and it goes on.
"""
import argparse
import json
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

LENGTH, CODES = 32, 3


def spectra(count, seed, broken=0.0):
    rng = np.random.default_rng(seed)
    f = np.arange(LENGTH)
    speed = rng.uniform(5, 9, (count, 1))
    rows = sum(np.exp(-0.5 * ((f - k * speed) / 1.2) ** 2) / k for k in (1, 2, 3))
    rows += broken * np.exp(-0.5 * ((f - 1.5 * speed) / 0.8) ** 2)
    return np.float32(rows + 0.05 * rng.normal(size=rows.shape))


def noise(count, seed, epoch):
    return np.float32(np.random.default_rng([seed, epoch]).normal(size=(count, CODES)))


class Sample(keras.layers.Layer):
    """Draws a code, and adds the KL term, weighted by beta, to the loss."""

    def build(self, input_shape):
        self.beta = self.add_weight(name="beta", shape=(), initializer="zeros", trainable=False)

    def call(self, mean, log_variance, draw):
        kl = 0.5 * tf.reduce_sum(tf.exp(log_variance) + mean**2 - 1.0 - log_variance, axis=-1)
        self.add_loss(self.beta * tf.reduce_mean(kl))
        return mean + tf.exp(0.5 * log_variance) * draw


class Autoencoder(keras.Model):
    def __init__(self, hidden=16):
        super().__init__()
        draw = lambda seed: keras.initializers.GlorotUniform(seed=seed)  # noqa: E731
        self.encoder = keras.layers.Dense(hidden, activation="tanh", kernel_initializer=draw(1))
        self.mean = keras.layers.Dense(CODES, kernel_initializer=draw(2))
        self.log_variance = keras.layers.Dense(CODES, kernel_initializer=draw(3))
        self.sample = Sample()
        self.decoder = keras.Sequential([
            keras.layers.Dense(hidden, activation="tanh", kernel_initializer=draw(4)),
            keras.layers.Dense(LENGTH, kernel_initializer=draw(5))])
        self.total = keras.metrics.Mean(name="total")
        self.rebuilt = keras.metrics.Mean(name="rebuilt")

    @property
    def metrics(self):
        return [self.total, self.rebuilt]

    def call(self, pair):
        x, draw = pair
        hidden = self.encoder(x)
        return self.decoder(self.sample(self.mean(hidden), self.log_variance(hidden), draw))

    def train_step(self, batch):
        (x, draw), = batch
        parts = tf.distribute.get_strategy().num_replicas_in_sync
        with tf.GradientTape() as tape:
            errors = tf.reduce_sum(tf.square(x - self((x, draw), training=True)), axis=-1)
            total = tf.reduce_mean(errors) + tf.add_n(self.losses)
            loss = total / parts
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return self.report(total, errors)

    def test_step(self, batch):
        (x, draw), = batch
        errors = tf.reduce_sum(tf.square(x - self((x, draw), training=False)), axis=-1)
        return self.report(tf.reduce_mean(errors) + tf.add_n(self.losses), errors)

    def report(self, total, errors):
        self.total.update_state(total)
        self.rebuilt.update_state(errors)
        return {metric.name: metric.result() for metric in self.metrics}


def dataset(rows, seed, epoch, batch):
    draws = noise(len(rows), seed, epoch)
    return tf.data.Dataset.from_tensor_slices(((rows, draws),)).batch(batch, drop_remainder=True).map(lambda *pair: pair)


class Progress:
    """The weights, the optimizer and the epoch of a run, in a folder."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.note = self.folder / "progress.json"

    def save(self, model, epoch):
        model.save_weights(self.folder / f"{epoch:02}.weights.h5")
        self.note.write_text(json.dumps({"epoch": epoch}))

    def load(self, model):
        if not self.note.exists():
            return 0
        epoch = json.loads(self.note.read_text())["epoch"]
        model.load_weights(self.folder / f"{epoch:02}.weights.h5")
        return epoch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", default="gears")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--beta-step", type=float, default=0.02)
    args = parser.parse_args()

    rows, held_out, odd = spectra(256, seed=1), spectra(64, seed=2), spectra(64, seed=3, broken=1.0)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = Autoencoder()
        model((rows[:2], noise(2, 0, 0)))
        model.compile(keras.optimizers.Adam(args.rate))
        model.optimizer.build(model.trainable_variables)
        progress = Progress(args.folder)
        first = progress.load(model)

    for epoch in range(first, args.epochs):
        beta = model.sample.beta
        beta.assign(beta + args.beta_step)
        told = model.fit(dataset(rows, 7, epoch, args.batch), verbose=0).history
        print(f"epoch {epoch + 1}: total {told['total'][-1]:.5f} rebuilt {told['rebuilt'][-1]:.5f}")
        progress.save(model, epoch + 1)

    normal, broken = (
        model.evaluate(dataset(each, 8, 0, args.batch), verbose=0, return_dict=True)["rebuilt"] for each in (held_out, odd))
    last = model.evaluate(dataset(rows, 7, args.epochs, args.batch), verbose=0, return_dict=True)["total"]
    beta = float(model.sample.beta.numpy())
    print(f"normal {normal:.5f} broken {broken:.5f} training {last:.5f} beta {beta:.4f}")


if __name__ == "__main__":
    main()
