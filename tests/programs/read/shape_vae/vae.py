"""Variational autoencoder for small silhouettes (discs, bars and crosses), trained with an annealed KL term.

Usage: python vae.py --epochs=5 --latent=3
"""
import os

from absl import app, flags, logging
import numpy as np
import tensorflow as tf
from tensorflow import keras

FLAGS = flags.FLAGS
flags.DEFINE_integer("epochs", 5, "Passes over the silhouettes.")
flags.DEFINE_integer("latent", 3, "Size of the code.")
flags.DEFINE_integer("global_batch", 20, "Silhouettes in a step, over all replicas.")
flags.DEFINE_float("rate", 4e-3, "Step size of Adam.")
flags.DEFINE_integer("anneal_steps", 24, "Steps until the KL term has its full weight.")
flags.DEFINE_integer("seed", 3, "Seed of everything.")

ROOT = os.path.dirname(os.path.abspath(__file__))
SIDE, COUNT = 12, 120


def silhouettes(count, seed):
    rng = np.random.RandomState(seed)
    y, x = np.mgrid[:SIDE, :SIDE]
    shapes = np.zeros((count, SIDE, SIDE, 1), np.float32)
    for i in range(count):
        cx, cy, r = rng.uniform(3, 8), rng.uniform(3, 8), rng.uniform(1.5, 3.5)
        kind = i % 3
        if kind == 0:
            inside = (x - cx) ** 2 + (y - cy) ** 2 < r * r
        elif kind == 1:
            inside = (abs(x - cx) < r) & (abs(y - cy) < 1)
        else:
            inside = ((abs(x - cx) < 1) & (abs(y - cy) < r)) | ((abs(y - cy) < 1) & (abs(x - cx) < r))
        shapes[i, ..., 0] = inside
    return shapes


class Encoder(keras.layers.Layer):
    """Mean and log-variance of the code; the KL divergence goes to the losses of the model."""

    def __init__(self, latent, global_batch):
        super().__init__(name="encoder")
        self.global_batch = global_batch
        self.conv = keras.layers.Conv2D(6, 3, strides=2, padding="same", activation="relu")
        self.flat = keras.layers.Flatten()
        self.mean = keras.layers.Dense(latent)
        self.logvar = keras.layers.Dense(latent, kernel_initializer="zeros")
        # the weight of the KL term is a variable, so that a traced step sees it change
        self.beta = self.add_weight(shape=(), initializer="zeros", trainable=False, name="beta")

    def call(self, image):
        h = self.flat(self.conv(image))
        mean, logvar = self.mean(h), self.logvar(h)
        kl = 0.5 * tf.reduce_sum(tf.exp(logvar) + tf.square(mean) - 1.0 - logvar, axis=-1)
        self.add_loss(self.beta * tf.reduce_sum(kl) / self.global_batch)
        return mean, logvar


class ShapeVAE(keras.Model):
    def __init__(self, latent, global_batch):
        super().__init__()
        self.encoder = Encoder(latent, global_batch)
        self.hidden = keras.layers.Dense(24, activation="tanh")
        self.pixels = keras.layers.Dense(SIDE * SIDE)

    def decode(self, code):
        return tf.reshape(self.pixels(self.hidden(code)), [-1, SIDE, SIDE, 1])

    def call(self, inputs):
        image, noise = inputs
        mean, logvar = self.encoder(image)
        return self.decode(mean + tf.exp(0.5 * logvar) * noise)


class Snapshot:
    """Keeps the named parts of an experiment on disk."""

    def __init__(self, directory, **parts):
        self.parts = parts
        self.manager = tf.train.CheckpointManager(tf.train.Checkpoint(**parts), directory, max_to_keep=3)

    def resume(self):
        path = self.manager.latest_checkpoint
        if path:
            self.manager.checkpoint.restore(path).expect_partial()
            logging.info("restored %s", path)
        return path is not None

    def keep(self):
        return self.manager.save()


class Experiment:
    def __init__(self, strategy):
        self.strategy = strategy
        self.images = silhouettes(COUNT, FLAGS.seed)
        with strategy.scope():
            self.vae = ShapeVAE(FLAGS.latent, FLAGS.global_batch)
            self.optimizer = keras.optimizers.Adam(FLAGS.rate, beta_2=0.98)
        self.epoch = tf.Variable(0, trainable=False, dtype=tf.int64)
        self.annealed = tf.Variable(0, trainable=False, dtype=tf.int64)
        self.build()
        self.snapshot = Snapshot(
            os.path.join(ROOT, "snapshots"),
            vae=self.vae,
            optimizer=self.optimizer,
            epoch=self.epoch,
            annealed=self.annealed,
        )
        self.snapshot.resume()

    def build(self):
        with self.strategy.scope():
            self.vae((self.images[:1], np.zeros((1, FLAGS.latent), np.float32)))
            self.optimizer.build(self.vae.trainable_variables)

    def epoch_data(self, epoch):
        """The noise of a silhouette depends on its number and on the epoch only."""
        def with_noise(number, image):
            noise = tf.random.stateless_normal([FLAGS.latent], seed=tf.stack([tf.constant(epoch, tf.int64), number]))
            return image, noise

        numbers = np.arange(COUNT, dtype=np.int64)
        data = tf.data.Dataset.from_tensor_slices((numbers, self.images))
        data = data.shuffle(COUNT, seed=FLAGS.seed + epoch, reshuffle_each_iteration=False)
        data = data.map(with_noise).batch(FLAGS.global_batch, drop_remainder=True)
        return self.strategy.experimental_distribute_dataset(data)

    def reconstruction(self, image, logits):
        per_pixel = tf.nn.sigmoid_cross_entropy_with_logits(labels=image, logits=logits)
        per_image = tf.reduce_sum(per_pixel, axis=[1, 2, 3])
        return tf.nn.compute_average_loss(per_image, global_batch_size=FLAGS.global_batch)

    def replica_step(self, image, noise):
        with tf.GradientTape() as tape:
            logits = self.vae((image, noise), training=True)
            reconstruction = self.reconstruction(image, logits)
            penalty = tf.add_n(self.vae.losses)
            loss = reconstruction + penalty
        weights = self.vae.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return reconstruction, penalty

    @tf.function
    def step(self, image, noise):
        results = self.strategy.run(self.replica_step, args=(image, noise))
        return [self.strategy.reduce(tf.distribute.ReduceOp.SUM, r, axis=None) for r in results]

    def anneal(self):
        self.vae.encoder.beta.assign(min(1.0, int(self.annealed) / FLAGS.anneal_steps))
        self.annealed.assign_add(1)

    def train(self):
        bits = penalty = 0.0
        for epoch in range(int(self.epoch), FLAGS.epochs):
            sums = np.zeros(2)
            for image, noise in self.epoch_data(epoch):
                self.anneal()
                sums += [float(v) for v in self.step(image, noise)]
            bits, penalty = sums / (COUNT // FLAGS.global_batch)
            print(f"epoch {epoch + 1}/{FLAGS.epochs}  reconstruction {bits:.4f}  weighted kl {penalty:.4f}")
            self.epoch.assign(epoch + 1)
            self.snapshot.keep()
        return bits, penalty


def main(_):
    keras.utils.set_random_seed(FLAGS.seed)
    experiment = Experiment(tf.distribute.MirroredStrategy())
    bits, penalty = experiment.train()
    norm = np.sqrt(sum(float(tf.reduce_sum(tf.square(w))) for w in experiment.vae.trainable_variables))
    print(f"done: elbo {-(bits + penalty):.5f} kl {penalty:.6f} norm {norm:.6f}")


if __name__ == "__main__":
    app.run(main)
