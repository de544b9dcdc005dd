import argparse

import numpy as np
import tensorflow as tf
from dynamics import Acceleration, Momentum, simulate

parser = argparse.ArgumentParser(description="Identifies a pendulum from short recordings.")
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--batch", type=int, default=20)
parser.add_argument("--rate", type=float, default=0.05)
parser.add_argument("--steps", type=int, default=5)


def recordings(count, steps, seed, noise=0.02):
    """Starts, torques and noisy states of a pendulum with friction."""
    rng = np.random.default_rng(seed)
    state = rng.uniform(-1.0, 1.0, (count, 2))
    torques = rng.uniform(-1.0, 1.0, (count, steps))
    start, states = state, []
    for torque in torques.T:
        for _ in range(10):
            turn = -4.0 * np.sin(state[:, 0]) - 0.3 * state[:, 1] + torque
            state = state + 0.01 * np.stack([state[:, 1], turn], axis=1)
        states.append(state + rng.normal(0, noise, state.shape))
    arrays = start, torques, np.stack(states, axis=1)
    return tuple(array.astype("float32") for array in arrays)


class Identification:
    def __init__(self, options, strategy):
        self.options, self.strategy = options, strategy
        with strategy.scope():
            self.model = Acceleration()
            self.momentum = Momentum(self.model.trainable_variables, options.rate)
        self.epoch, self.best = tf.Variable(0), tf.Variable(np.inf, dtype=tf.float32)
        self.checkpoint = tf.train.Checkpoint(
            model=self.model, momentum=self.momentum, epoch=self.epoch, best=self.best
        )
        self.manager = tf.train.CheckpointManager(self.checkpoint, "states", max_to_keep=2)
        self.keep = tf.train.Checkpoint(model=self.model)

    def errors(self, start, torques, states):
        guess = simulate(self.model, start, torques)
        return tf.reduce_mean(tf.square(guess - states), axis=(1, 2))

    def train_step(self, start, torques, states):
        inputs = tf.concat([start, torques[:, :1]], axis=1)
        with tf.GradientTape() as tape:
            errors = self.errors(start, torques, states)
            loss = tf.reduce_sum(errors) / self.options.batch
        variables = self.model.trainable_variables
        context = tf.distribute.get_replica_context()
        gradients = context.all_reduce("SUM", tape.gradient(loss, variables))
        self.momentum.update(gradients, variables)
        self.model.see(inputs)
        return loss

    @tf.function
    def train_batch(self, batch):
        losses = self.strategy.run(self.train_step, args=batch)
        return self.strategy.reduce("SUM", losses, axis=None)

    @tf.function
    def test_batch(self, batch):
        errors = self.strategy.run(self.errors, args=batch)
        return self.strategy.reduce("SUM", errors, axis=0)

    def mean_error(self, arrays):
        data = tf.data.Dataset.from_tensor_slices(arrays).batch(self.options.batch)
        total = 0.0
        for batch in self.strategy.experimental_distribute_dataset(data):
            total += float(self.test_batch(batch))
        return total / len(arrays[0])

    def train(self, arrays, held):
        self.checkpoint.restore(self.manager.latest_checkpoint)
        data = tf.data.Dataset.from_tensor_slices(arrays)
        while self.epoch < self.options.epochs:
            order = data.shuffle(len(arrays[0]), seed=300 + int(self.epoch))
            batches = order.batch(self.options.batch, drop_remainder=True)
            for batch in self.strategy.experimental_distribute_dataset(batches):
                loss = self.train_batch(batch)
            error = self.mean_error(held)
            if error < self.best:
                self.best.assign(error)
                self.keep.write("best/model")
            else:
                self.momentum.rate.assign(self.momentum.rate * 0.5)
            self.epoch.assign_add(1)
            self.manager.save()
            print(f"epoch {int(self.epoch)}: loss {float(loss):.4f}, held {error:.4f}")
        self.keep.read("best/model").assert_consumed()


def main():
    options = parser.parse_args()
    strategy = tf.distribute.MirroredStrategy()
    identification = Identification(options, strategy)
    identification.train(
        recordings(200, options.steps, seed=1), recordings(65, options.steps, seed=2)
    )
    error = identification.mean_error(recordings(87, options.steps, seed=3, noise=0.0))
    size = " ".join(f"{each:.4f}" for each in identification.model.size.numpy())
    print(f"error {1000 * error:.3f}, rate {identification.momentum.rate.numpy():.4f}, sizes {size}")


if __name__ == "__main__":
    main()
