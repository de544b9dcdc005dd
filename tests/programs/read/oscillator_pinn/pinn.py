"""Physics-informed regression of a damped oscillator  u'' + c u' + k u = 0  with unknown c and k.

The network is fitted to a few noisy measurements and to the equation at collocation points, which are drawn
anew for every stage. The weight of the equation follows the ratio of the two terms (running averages).
"""
import argparse
import json
import pathlib

import numpy as np
import tensorflow as tf
import keras
from keras import layers, optimizers

RUN = pathlib.Path(__file__).resolve().parent / "run"
K_TRUE, C_TRUE = 9.0, 0.8


def measurements(count=32, seed=0):
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0, 2, (count, 1)), axis=0)
    w = np.sqrt(K_TRUE - C_TRUE ** 2 / 4)
    u = np.exp(-C_TRUE * t / 2) * np.cos(w * t) + rng.normal(0, 0.02, t.shape)
    return t.astype("float32"), u.astype("float32")


def collocation(stage, count):
    return np.random.default_rng([77, stage]).uniform(0, 2, (count, 1)).astype("float32")


class Oscillator(keras.Model):
    """u(t), with the coefficients of the equation as trainable weights."""

    def __init__(self, units=16, depth=2):
        super().__init__()
        self.body = [layers.Dense(units, activation="tanh") for _ in range(depth)]
        self.head = layers.Dense(1)
        self.log_c = self.add_weight(shape=(), initializer="zeros", name="log_c")
        self.log_k = self.add_weight(shape=(), initializer=keras.initializers.Constant(1.5), name="log_k")

    def call(self, t):
        h = 2.0 * t - 2.0
        for layer in self.body:
            h = layer(h)
        return self.head(h)

    def coefficients(self):
        return tf.exp(self.log_c), tf.exp(self.log_k)

    def residual(self, t):
        with tf.GradientTape() as outer:
            outer.watch(t)
            with tf.GradientTape() as inner:
                inner.watch(t)
                u = self(t)
            du = inner.gradient(u, t)
        ddu = outer.gradient(du, t)
        c, k = self.coefficients()
        return ddu + c * du + k * u


class Balance:
    """Running averages of the two terms; lives in a JSON file next to the checkpoints."""

    def __init__(self, decay=0.9):
        self.decay = decay
        self.fit = self.physics = 1.0
        self.stage = 0

    @property
    def weight(self):
        return 0.05 * self.fit / (self.physics + 1e-6) + 0.002

    def update(self, fit, physics):
        self.fit = self.decay * self.fit + (1 - self.decay) * fit
        self.physics = self.decay * self.physics + (1 - self.decay) * physics

    def dump(self, path):
        path.write_text(json.dumps({"stage": self.stage, "fit": self.fit, "physics": self.physics}))

    def load(self, path):
        state = json.loads(path.read_text())
        self.stage, self.fit, self.physics = state["stage"], state["fit"], state["physics"]


class Solver:
    def __init__(self, args):
        self.args = args
        self.strategy = tf.distribute.MirroredStrategy()
        self.balance = Balance()
        with self.strategy.scope():
            self.net = Oscillator()
            self.net(tf.zeros((1, 1)))
            self.opt = optimizers.Adam(args.rate, beta_1=0.85)
            self.opt.build(self.net.trainable_variables)
        self.ckpt = tf.train.Checkpoint(net=self.net, opt=self.opt)
        RUN.mkdir(exist_ok=True)
        self.step = tf.function(self.step)

    def distribute(self, stage):
        t, u = measurements()
        steps, batch = self.args.steps, self.args.batch
        points = collocation(stage, steps * batch)
        rows = np.random.default_rng([78, stage]).integers(0, len(t), steps * batch)
        data = tf.data.Dataset.from_tensor_slices((t[rows], u[rows], points)).batch(batch)
        return self.strategy.experimental_distribute_dataset(data)

    def replica(self, t, u, points, weight):
        with tf.GradientTape() as tape:
            fit = tf.nn.compute_average_loss(tf.square(self.net(t) - u)[:, 0], global_batch_size=self.args.batch)
            physics = tf.nn.compute_average_loss(tf.square(self.net.residual(points))[:, 0], global_batch_size=self.args.batch)
            loss = fit + weight * physics
        variables = self.net.trainable_variables
        self.opt.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return fit, physics

    def step(self, batch, weight):
        fit, physics = self.strategy.run(self.replica, args=(*batch, weight))
        return self.strategy.reduce("SUM", fit, axis=None), self.strategy.reduce("SUM", physics, axis=None)

    def path(self, stage):
        return RUN / f"stage{stage:03d}"

    def save(self):
        """The JSON file is written first; a stage counts as saved when its checkpoint is complete."""
        path = self.path(self.balance.stage)
        self.balance.dump(path.with_suffix(".json"))
        self.ckpt.write(str(path))

    def resume(self):
        saved = sorted(RUN.glob("stage*.index"))
        if saved:
            path = saved[-1].with_suffix("")
            self.ckpt.read(str(path)).assert_consumed()
            self.balance.load(path.with_suffix(".json"))

    def solve(self):
        self.resume()
        fit = physics = 0.0
        while self.balance.stage < self.args.stages:
            stage = self.balance.stage
            self.opt.learning_rate.assign(self.args.rate * self.args.decay ** stage)
            for batch in self.distribute(stage):
                fit, physics = (float(v) for v in self.step(batch, tf.constant(self.balance.weight)))
                self.balance.update(fit, physics)
            self.balance.stage += 1
            c, k = self.net.coefficients()
            print(f"stage {stage}: fit {self.balance.fit:.5f} physics {self.balance.physics:.4f} c {float(c):.4f} k {float(k):.4f}")
            self.save()
        return fit, physics


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stages", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--decay", type=float, default=0.8)
    keras.utils.set_random_seed(4)
    solver = Solver(parser.parse_args())
    fit, physics = solver.solve()
    c, k = solver.net.coefficients()
    print(f"solved: fit {fit:.6f} physics {physics:.6f} c {float(c):.6f} k {float(k):.6f}")
