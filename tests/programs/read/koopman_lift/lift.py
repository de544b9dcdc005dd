"""Koopman operator of a damped pendulum: an encoder lifts the state, and a matrix steps it in time.

The encoder and the operator have an optimizer each. Written for Keras 2, which the cluster has.
"""
import argparse
import json
import os

import numpy as np
import tensorflow as tf
import tf_keras as keras

LIFTED = 6


def trajectories(count, steps, seed):
    rng = np.random.default_rng(seed)
    state = rng.uniform([-2.0, -1.5], [2.0, 1.5], (count, 2))
    seen = [state]
    for _ in range(steps):
        for _ in range(5):
            angle, speed = state.T
            state = state + 0.04 * np.stack([speed, -np.sin(angle) * 2 - 0.3 * speed], 1)
        seen.append(state)
    return np.float32(np.stack(seen, 1))


class Scaler(tf.Module):
    """Running mean and mean square of all states that were seen, kept equal on all replicas."""

    def __init__(self, size, keep=0.9):
        super().__init__()
        self.keep = keep
        same = dict(trainable=False, aggregation=tf.VariableAggregation.MEAN)
        self.mean = tf.Variable(tf.zeros(size), **same)
        self.square = tf.Variable(tf.ones(size), **same)

    def learn(self, states):
        states = tf.reshape(states, (-1, states.shape[-1]))
        self.mean.assign(self.keep * self.mean + (1 - self.keep) * tf.reduce_mean(states, 0))
        self.square.assign(self.keep * self.square + (1 - self.keep) * tf.reduce_mean(states ** 2, 0))

    def __call__(self, states):
        return (states - self.mean) / tf.sqrt(self.square - self.mean ** 2 + 1e-3)


class Lift:
    def __init__(self, strategy, args):
        self.strategy, self.args, self.epoch, self.history = strategy, args, 0, []
        draw = keras.initializers.GlorotUniform
        with strategy.scope():
            self.scaler = Scaler(2)
            self.encoder = keras.Sequential([
                keras.Input((2,)),
                keras.layers.Dense(20, "tanh", kernel_initializer=draw(1)),
                keras.layers.Dense(LIFTED, kernel_initializer=draw(2)),
            ])
            self.decoder = keras.layers.Dense(2, kernel_initializer=draw(3))
            self.decoder.build((None, LIFTED))
            self.operator = tf.Variable(tf.eye(LIFTED))
            self.outer = keras.optimizers.SGD(args.rate, momentum=0.9)
            self.inner = keras.optimizers.Adam(args.operator_rate)
            self.nets = self.encoder.trainable_variables + self.decoder.trainable_variables
            self.outer.build(self.nets)
            self.inner.build([self.operator])

    def state(self):
        """All that changes in training, by name."""
        groups = {
            "net": self.nets, "operator": [self.operator], "scaler": [self.scaler.mean, self.scaler.square],
            "outer": self.outer.variables, "inner": self.inner.variables,
        }
        return {f"{group}/{n}": v for group, variables in groups.items() for n, v in enumerate(variables)}

    def save(self, folder):
        arrays = {name: variable.numpy() for name, variable in self.state().items()}
        told = json.dumps({"epoch": self.epoch, "history": self.history})
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/partly.npz", "wb") as file:
            np.savez(file, told=told, **arrays)
        os.replace(f"{folder}/partly.npz", f"{folder}/lift.npz")

    def load(self, folder):
        try:
            with np.load(f"{folder}/lift.npz") as arrays:
                told = json.loads(str(arrays["told"]))
                for name, variable in self.state().items():
                    variable.assign(arrays[name])
        except FileNotFoundError:
            return
        self.epoch, self.history = told["epoch"], told["history"]
        print(f"{folder}: {self.epoch} epochs are done")

    def losses(self, path):
        """One number for each trajectory: how well the lifted state is stepped, and decoded again."""
        now = self.encoder(tf.reshape(path, (-1, 2)))
        lifted = tf.reshape(now, (-1, path.shape[1], LIFTED))
        ahead = tf.einsum("btl,lm->btm", lifted[:, :-1], self.operator)
        stepped = tf.reduce_mean((ahead - lifted[:, 1:]) ** 2, (1, 2))
        decoded = tf.reshape(self.decoder(tf.reshape(ahead, (-1, LIFTED))), (-1, path.shape[1] - 1, 2))
        return stepped + tf.reduce_mean((decoded - path[:, 1:]) ** 2, (1, 2))

    def step(self, path):
        self.scaler.learn(path)
        path = self.scaler(path)
        with tf.GradientTape(persistent=True) as tape:
            losses = self.losses(path)
            loss = tf.nn.compute_average_loss(losses, global_batch_size=self.args.batch)
        self.outer.apply_gradients(zip(tape.gradient(loss, self.nets), self.nets))
        self.inner.apply_gradients([(tape.gradient(loss, self.operator), self.operator)])
        return loss

    @tf.function
    def train_step(self, path):
        return self.strategy.reduce("SUM", self.strategy.run(self.step, args=(path,)), axis=None)

    def fit(self, paths):
        while self.epoch < self.args.epochs:
            order = np.random.default_rng(self.epoch).permutation(len(paths))
            data = tf.data.Dataset.from_tensor_slices(paths[order]).batch(self.args.batch, drop_remainder=True)
            losses = [float(self.train_step(x)) for x in self.strategy.experimental_distribute_dataset(data)]
            self.history.append(float(np.mean(losses)))
            self.epoch += 1
            self.save(self.args.folder)
            print(f"epoch {self.epoch}: {self.history[-1]:.5f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--operator-rate", type=float, default=0.01)
    parser.add_argument("--folder", default="koopman")
    args = parser.parse_args()
    lift = Lift(tf.distribute.MirroredStrategy(), args)
    lift.load(args.folder)
    lift.fit(trajectories(160, 12, seed=1))
    error = float(tf.reduce_mean(lift.losses(lift.scaler(trajectories(50, 12, seed=2)))))
    values = np.sort(np.abs(np.linalg.eigvals(lift.operator.numpy())))
    print(f"test {error:.5f} first {lift.history[0]:.5f} last {lift.history[-1]:.5f} "
          f"largest eigenvalue {values[-1]:.4f} smallest {values[0]:.4f}")


if __name__ == "__main__":
    main()
