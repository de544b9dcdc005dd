"""A generative adversarial network for short waveforms, with one optimizer for each of the two networks."""
import argparse
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

HERE = Path(__file__).resolve().parent
LENGTH, LATENT = 16, 6

parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--batch", type=int, default=24)
parser.add_argument("--critic-steps", type=int, default=1)
parser.add_argument("--objective", choices=["logistic", "least_squares"], default="least_squares")
parser.add_argument("--decay", type=float, default=0.95, help="of the averaged generator")
parser.add_argument("--seed", type=int, default=5)


def waveforms(count, seed):
    rng = np.random.default_rng(seed)
    time = np.linspace(0, 1, LENGTH)[None]
    frequency, phase = rng.uniform(1, 2.5, (count, 1)), rng.uniform(0, 6.28, (count, 1))
    return (np.sin(6.28 * frequency * time + phase) * rng.uniform(0.5, 1, (count, 1))).astype("float32")


def generator():
    return keras.Sequential([
        keras.Input((LATENT,)),
        keras.layers.Dense(32, activation="elu"),
        keras.layers.Dense(LENGTH, activation="tanh"),
    ], name="generator")


def critic():
    return keras.Sequential([
        keras.Input((LENGTH,)),
        keras.layers.Reshape((LENGTH, 1)),
        keras.layers.Conv1D(8, 5, strides=2, activation="elu"),
        keras.layers.Flatten(),
        keras.layers.Dense(16, activation="elu"),
        keras.layers.Dense(1),
    ], name="critic")


class Objectives:
    """(loss of the critic, loss of the generator) by name; each is given scores and returns one number per example."""
    table = {
        "logistic": (lambda real, fake: tf.nn.softplus(-real) + tf.nn.softplus(fake), lambda fake: tf.nn.softplus(-fake)),
        "least_squares": (lambda real, fake: (real - 1.0) ** 2 + fake ** 2, lambda fake: (fake - 1.0) ** 2),
    }

    def __init__(self, name, batch):
        self.critic_terms, self.generator_terms = self.table[name]
        self.batch = batch

    def _share(self, terms):
        return tf.reduce_sum(terms) / self.batch

    def critic_loss(self, real, fake):
        return self._share(self.critic_terms(real, fake))

    def generator_loss(self, fake):
        return self._share(self.generator_terms(fake))


class WaveGAN:

    def __init__(self, args):
        self.args = args
        self.strategy = tf.distribute.MirroredStrategy()
        self.objectives = Objectives(args.objective, args.batch)
        with self.strategy.scope():
            self.generator, self.critic = generator(), critic()
            self.averaged = generator()
            self.averaged.set_weights(self.generator.get_weights())
            self.generator_optimizer = keras.optimizers.Adam(2e-3, beta_1=0.5)
            self.critic_optimizer = keras.optimizers.SGD(0.03, momentum=0.8)
            self.generator_optimizer.build(self.generator.trainable_variables)
            self.critic_optimizer.build(self.critic.trainable_variables)
        self.updates = tf.Variable(0, dtype=tf.int32)
        self.round = tf.Variable(0, dtype=tf.int32)
        self.saver = tf.train.CheckpointManager(
            tf.train.Checkpoint(
                generator=self.generator, critic=self.critic, averaged=self.averaged,
                generator_optimizer=self.generator_optimizer, critic_optimizer=self.critic_optimizer,
                updates=self.updates, round=self.round),
            HERE / "checkpoints", max_to_keep=2)
        self.saver.restore_or_initialize()

    def noise(self, count, update, salt):
        """The rows of this replica out of the noise of the whole batch, which depends on the number of the update only."""
        whole = tf.random.stateless_normal([self.args.batch, LATENT], seed=tf.stack([update, self.args.seed + salt]))
        first = tf.distribute.get_replica_context().replica_id_in_sync_group * count
        return whole[first:first + count]

    def improve_critic(self, real, update):
        fake = self.generator(self.noise(len(real), update, 0))
        with tf.GradientTape() as tape:
            loss = self.objectives.critic_loss(self.critic(real), self.critic(fake))
        self.apply(self.critic_optimizer, self.critic, tape, loss)
        return loss

    def improve_generator(self, real, update):
        with tf.GradientTape() as tape:
            loss = self.objectives.generator_loss(self.critic(self.generator(self.noise(len(real), update, 1))))
        self.apply(self.generator_optimizer, self.generator, tape, loss)
        return loss

    @staticmethod
    def apply(optimizer, network, tape, loss):
        variables = network.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    @tf.function
    def step(self, real, update):
        def both(real):
            for _ in range(self.args.critic_steps):
                critic_loss = self.improve_critic(real, update)
            return critic_loss, self.improve_generator(real, update)
        losses = self.strategy.run(both, args=(real,))
        return [self.strategy.reduce("SUM", loss, axis=None) for loss in losses]

    def follow(self):
        decay = self.args.decay
        for slow, fast in zip(self.averaged.variables, self.generator.variables):
            slow.assign(decay * slow + (1 - decay) * fast)

    def batches(self, number):
        data = tf.data.Dataset.from_tensor_slices(waveforms(self.args.batch * 6, seed=[self.args.seed, number]))
        return self.strategy.experimental_distribute_dataset(data.batch(self.args.batch))

    def train(self):
        for number in range(int(self.round.numpy()), self.args.rounds):
            for real in self.batches(number):
                critic_loss, generator_loss = self.step(real, self.updates.read_value())
                self.updates.assign_add(1)
                self.follow()
            self.round.assign(number + 1)
            self.saver.save()
            print(f"round {number}: critic {float(critic_loss):.5f} generator {float(generator_loss):.5f}", flush=True)

    def summary(self):
        noise = tf.random.stateless_normal([64, LATENT], seed=[1, 2])
        real = waveforms(64, 999)
        gap = float(tf.reduce_mean(self.critic(real)) - tf.reduce_mean(self.critic(self.averaged(noise))))
        size = lambda network: sum(float(np.abs(w).sum()) for w in network.get_weights())
        print(f"after {int(self.updates.numpy())} updates: gap {gap:.5f} generator {size(self.generator):.5f} "
              f"averaged {size(self.averaged):.5f} critic {size(self.critic):.5f}")


if __name__ == "__main__":
    options = parser.parse_args()
    keras.utils.set_random_seed(options.seed)
    gan = WaveGAN(options)
    gan.train()
    gan.summary()
