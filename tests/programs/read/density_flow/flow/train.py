"""python -m flow.train [--epochs N]: fits a density, and lowers the rate whenever the validation stops improving."""
import argparse

import numpy as np
import tensorflow as tf

from .bijectors import RealNVP
from .optimizer import Momentum

DIMS = 4


def rows(count, seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(count, DIMS))
    x = np.stack([z[:, 0], z[:, 1] + z[:, 0] ** 2, np.exp(0.5 * z[:, 2]), z[:, 3] * z[:, 2]], 1)
    return np.float32(x)


class Plateau(tf.Module):
    """Halves a rate when the best value has not become better for `patience` epochs."""

    def __init__(self, rate, patience):
        super().__init__(name="plateau")
        self.rate, self.patience = rate, patience
        self.best = tf.Variable(np.inf, dtype=tf.float32, trainable=False)
        self.waited = tf.Variable(0, trainable=False)

    def see(self, value):
        if value < float(self.best):
            self.best.assign(value)
            self.waited.assign(0)
            return
        self.waited.assign_add(1)
        if int(self.waited) >= self.patience:
            self.rate.assign(self.rate / 2)
            self.waited.assign(0)


class Experiment:
    def __init__(self, args):
        self.args = args
        self.strategy = tf.distribute.MirroredStrategy()
        with self.strategy.scope():
            self.flow = RealNVP(DIMS)
            self.optimizer = Momentum(self.flow.trainable_variables, args.rate)
        self.plateau = Plateau(self.optimizer.rate, args.patience)
        self.epoch = tf.Variable(0, trainable=False)
        self.checkpoint = tf.train.Checkpoint(
            flow=self.flow, optimizer=self.optimizer, plateau=self.plateau, epoch=self.epoch)
        self.manager = tf.train.CheckpointManager(self.checkpoint, args.folder, max_to_keep=2)

    def distributed(self, x):
        data = tf.data.Dataset.from_tensor_slices(x).batch(self.args.batch, drop_remainder=True)
        return self.strategy.experimental_distribute_dataset(data)

    def replica_step(self, x):
        with tf.GradientTape() as tape:
            loss = -tf.reduce_sum(self.flow.log_density(x, training=True)) / self.args.batch
        self.optimizer.step(tape.gradient(loss, self.flow.trainable_variables))
        return loss

    @tf.function
    def train_step(self, x):
        return self.strategy.reduce("SUM", self.strategy.run(self.replica_step, args=(x,)), axis=None)

    @tf.function
    def densities(self, x):
        return self.strategy.reduce("MEAN", self.strategy.run(self.flow.log_density, args=(x,)), axis=0)

    def validate(self, seed):
        return -float(np.mean([float(self.densities(x)) for x in self.distributed(rows(128, seed))]))

    def run(self):
        if self.manager.restore_or_initialize():
            print("continues after epoch", int(self.epoch))
        for epoch in range(int(self.epoch), self.args.epochs):
            x = rows(self.args.rows, seed=1)
            x = x[np.random.default_rng(epoch).permutation(len(x))]
            losses = [float(self.train_step(batch)) for batch in self.distributed(x)]
            found = self.validate(seed=2)
            self.plateau.see(found)
            print(f"epoch {epoch + 1} nll {np.mean(losses):.4f} validation {found:.4f} rate {float(self.optimizer.rate.numpy()):.4f}")
            self.epoch.assign_add(1)
            self.manager.save()
        print(f"test nll {self.validate(seed=3):.4f} best validation {float(self.plateau.best):.4f} "
              f"rate {float(self.optimizer.rate.numpy()):.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="flow.train")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rows", type=int, default=128)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--patience", type=int, default=1)
    parser.add_argument("--folder", default="flow_run")
    Experiment(parser.parse_args()).run()
