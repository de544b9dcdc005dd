"""WGAN with gradient penalty on eight Gaussians in a ring. A critic takes several steps for each of the generator."""
import argparse
import pathlib

import keras
import numpy as np
import tensorflow as tf

LATENT = 4


def real_points(rng, rows):
    angle = 2 * np.pi * rng.integers(0, 8, rows) / 8
    return np.float32(np.stack([np.cos(angle), np.sin(angle)], 1) + 0.05 * rng.normal(size=(rows, 2)))


def dense(units, seed, activation=None):
    return keras.layers.Dense(units, activation, kernel_initializer=keras.initializers.GlorotNormal(seed=seed))


def make_generator():
    return keras.Sequential([keras.Input((LATENT,)), dense(32, 1, "tanh"), dense(2, 2)], name="generator")


def make_critic():
    return keras.Sequential([keras.Input((2,)), dense(32, 3, "softplus"), dense(32, 4, "softplus"), dense(1, 5)], name="critic")


class WGAN:
    def __init__(self, strategy, options):
        self.strategy, self.options = strategy, options
        with strategy.scope():
            self.generator, self.critic = make_generator(), make_critic()
            self.generator_optimizer = keras.optimizers.RMSprop(options.rate)
            self.critic_optimizer = keras.optimizers.SGD(4 * options.rate, momentum=0.8)
            self.generator_optimizer.build(self.generator.trainable_variables)
            self.critic_optimizer.build(self.critic.trainable_variables)
            self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.checkpoint = tf.train.Checkpoint(
            generator=self.generator,
            critic=self.critic,
            generator_optimizer=self.generator_optimizer,
            critic_optimizer=self.critic_optimizer,
            step=self.step,
        )
        self.manager = tf.train.CheckpointManager(self.checkpoint, options.folder, max_to_keep=2)

    def average(self, per_example):
        return tf.nn.compute_average_loss(per_example, global_batch_size=self.options.batch)

    def penalty(self, real, made, between):
        mixed = between * real + (1 - between) * made
        with tf.GradientTape() as tape:
            tape.watch(mixed)
            scores = self.critic(mixed)
        slope = tf.sqrt(tf.reduce_sum(tape.gradient(scores, mixed) ** 2, 1) + 1e-12)
        return (slope - 1.0) ** 2

    def critic_step(self, real, latent, between):
        made = self.generator(latent)
        with tf.GradientTape() as tape:
            distance = self.critic(real)[:, 0] - self.critic(made)[:, 0]
            loss = self.average(self.options.penalty * self.penalty(real, made, between) - distance)
        weights = self.critic.trainable_variables
        self.critic_optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return self.average(distance)

    def generator_step(self, latent):
        with tf.GradientTape() as tape:
            loss = self.average(-self.critic(self.generator(latent))[:, 0])
        weights = self.generator.trainable_variables
        self.generator_optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))

    def replica_step(self, real, latent, between):
        for turn in range(self.options.turns):
            distance = self.critic_step(real[:, turn], latent[:, turn], between[:, turn])
        self.generator_step(latent[:, self.options.turns])
        return distance

    @tf.function
    def train_step(self, batch):
        return self.strategy.reduce("SUM", self.strategy.run(self.replica_step, args=batch), axis=None)

    def batches(self, first):
        """What a step needs depends on its number only."""
        rows, turns = self.options.batch, self.options.turns

        def draw(step):
            rng = np.random.default_rng([self.options.seed, int(step)])
            real = real_points(rng, rows * turns).reshape(rows, turns, 2)
            latent = rng.normal(size=(rows, turns + 1, LATENT)).astype("float32")
            return real, latent, rng.uniform(size=(rows, turns, 1)).astype("float32")

        def shaped(step):
            real, latent, between = tf.numpy_function(draw, [step], [tf.float32] * 3)
            return (tf.ensure_shape(real, (rows, turns, 2)), tf.ensure_shape(latent, (rows, turns + 1, LATENT)),
                    tf.ensure_shape(between, (rows, turns, 1)))

        return self.strategy.experimental_distribute_dataset(tf.data.Dataset.range(first, self.options.steps).map(shaped))

    def train(self):
        if self.manager.restore_or_initialize():
            print(f"restored step {int(self.step.numpy())}")
        for batch in self.batches(int(self.step.numpy())):
            distance = float(self.train_step(batch))
            self.step.assign_add(1)
            step = int(self.step.numpy())
            if step % self.options.every == 0:
                print(f"step {step}: distance {distance:.4f}")
                self.manager.save(checkpoint_number=step)

    def report(self):
        rng = np.random.default_rng(0)
        made = self.generator(rng.normal(size=(512, LATENT)).astype("float32")).numpy()
        scores = self.critic(real_points(rng, 512)).numpy().mean() - self.critic(made).numpy().mean()
        print(f"distance {scores:.4f} radius {np.linalg.norm(made, axis=1).mean():.4f} spread {made.std():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--rate", type=float, default=0.004)
    parser.add_argument("--penalty", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("wgan_checkpoints"))
    options = parser.parse_args()
    gan = WGAN(tf.distribute.MirroredStrategy(), options)
    gan.train()
    gan.report()


if __name__ == "__main__":
    main()
