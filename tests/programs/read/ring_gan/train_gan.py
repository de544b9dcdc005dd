#!/usr/bin/env python
"""A generator of points on two rings, trained against a discriminator. Interrupted runs go on where they stopped."""
import argparse
import pathlib

import numpy as np
import tensorflow as tf
from tensorflow import keras

ARGS = argparse.ArgumentParser()
ARGS.add_argument("--rounds", type=int, default=5)
ARGS.add_argument("--points", type=int, default=32, help="real points in a step, over all devices")
ARGS.add_argument("--noise", type=int, default=4)
ARGS.add_argument("--seed", type=int, default=5)

FOLDER = pathlib.Path(__file__).resolve().parent / "gan_state"
TOTAL = 192


def ring_points(seed):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, TOTAL)
    radius = np.where(rng.uniform(size=TOTAL) < 0.5, 0.5, 1.0) + rng.normal(0, 0.03, TOTAL)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).astype(np.float32)


def mlp(inputs, sizes, name):
    layers = [keras.Input((inputs,))]
    layers += [keras.layers.Dense(size, activation=keras.activations.tanh) for size in sizes[:-1]]
    layers += [keras.layers.Dense(sizes[-1])]
    return keras.Sequential(layers, name=name)


class Adversary:
    """A network with its own optimizer."""

    def __init__(self, network, rate):
        self.network = network
        self.optimizer = keras.optimizers.SGD(rate, momentum=0.9)
        self.optimizer.build(network.trainable_variables)

    def __call__(self, x):
        return self.network(x, training=True)

    def learn(self, tape, loss):
        weights = self.network.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))

    def parts(self, prefix):
        return {f"{prefix}_network": self.network, f"{prefix}_optimizer": self.optimizer}


class RingGan:
    def __init__(self, args, strategy):
        self.args, self.strategy = args, strategy
        self.real = ring_points(args.seed)
        with strategy.scope():
            self.generator = Adversary(mlp(args.noise, [16, 16, 2], "generator"), 0.04)
            self.critic = Adversary(mlp(2, [16, 16, 1], "critic"), 0.08)
            self.entropy = keras.losses.BinaryCrossentropy(from_logits=True, reduction="sum")
        self.round = tf.Variable(0, trainable=False, name="round")
        self.drift = tf.Variable(0.0, trainable=False, name="drift")     # running mean of the critic's advantage
        parts = {"round": self.round, "drift": self.drift}
        parts.update(self.generator.parts("generator"))
        parts.update(self.critic.parts("critic"))
        self.checkpoint = tf.train.Checkpoint(**parts)
        self.saver = tf.train.CheckpointManager(self.checkpoint, str(FOLDER), max_to_keep=2)
        # one stream of random numbers for order and noise; what finished rounds took from it is skipped
        self.stream = np.random.default_rng(args.seed + 1)
        self.resume()

    def resume(self):
        if self.saver.latest_checkpoint:
            self.checkpoint.restore(self.saver.latest_checkpoint).assert_existing_objects_matched()
            for _ in range(int(self.round)):
                self.draw()

    def draw(self):
        order = self.stream.permutation(TOTAL)
        noise = self.stream.normal(size=(2, TOTAL, self.args.noise)).astype(np.float32)
        return self.real[order], noise[0], noise[1]

    def bce(self, label, logits):
        return self.entropy(label * tf.ones_like(logits), logits) / self.args.points

    def critic_step(self, real, noise):
        fake = self.generator(noise)
        with tf.GradientTape() as tape:
            loss = self.bce(0.9, self.critic(real)) + self.bce(0.0, self.critic(fake))
        self.critic.learn(tape, loss)
        return loss

    def generator_step(self, noise):
        with tf.GradientTape() as tape:
            loss = self.bce(1.0, self.critic(self.generator(noise)))
        self.generator.learn(tape, loss)
        return loss

    @tf.function
    def step(self, real, noise_c, noise_g):
        critic = self.strategy.run(self.critic_step, args=(real, noise_c))
        generator = self.strategy.run(self.generator_step, args=(noise_g,))
        return [self.strategy.reduce("SUM", loss, axis=None) for loss in (critic, generator)]

    def play_round(self):
        data = tf.data.Dataset.from_tensor_slices(self.draw()).batch(self.args.points)
        history = []
        for batch in self.strategy.experimental_distribute_dataset(data):
            critic, generator = (float(x) for x in self.step(*batch))
            self.drift.assign(0.9 * self.drift + 0.1 * (generator - critic))
            # whoever is ahead learns more slowly
            self.critic.optimizer.learning_rate.assign(0.08 / (1.0 + max(0.0, 4 * float(self.drift))))
            history.append((critic, generator))
        return np.mean(history, axis=0)

    def play(self):
        losses = (0.0, 0.0)
        while int(self.round) < self.args.rounds:
            losses = self.play_round()
            self.round.assign_add(1)
            print("round %d: critic %.4f generator %.4f drift %.4f" % (int(self.round), *losses, float(self.drift)))
            self.saver.save()
        return losses


def main():
    args = ARGS.parse_args()
    keras.utils.set_random_seed(args.seed)
    gan = RingGan(args, tf.distribute.MirroredStrategy())
    critic, generator = gan.play()
    sizes = [sum(float(np.abs(w).sum()) for w in a.network.get_weights()) for a in (gan.critic, gan.generator)]
    print("end: critic %.6f generator %.6f |critic| %.5f |generator| %.5f" % (critic, generator, *sizes))


if __name__ == "__main__":
    main()
