"""Fits the temperature of a rod to some measurements and to the heat equation u_t = k u_xx, with k unknown.

The network sees (x, t). The loss has a term for the measurements and one for the equation at collocation points; the second
is weighted so that both are of the same order, by a running ratio.
"""
import os
from collections import namedtuple

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_integer("steps", 40, "updates")
flags.DEFINE_integer("measured", 20, "measurements in a batch")
flags.DEFINE_integer("collocated", 32, "points of the equation in a batch")
flags.DEFINE_float("rate", 0.05, "learning rate")
flags.DEFINE_float("limit", 0.2, "largest norm of the gradient")
flags.DEFINE_string("log", os.path.join(os.path.dirname(os.path.abspath(__file__)), "heat.csv"), "file of the losses")

TRUE_K = 0.12
Batch = namedtuple("Batch", "place temperature inner")


def temperature(place):
    x, t = place[:, :1], place[:, 1:]
    return np.exp(-TRUE_K * np.pi ** 2 * t) * np.sin(np.pi * x)


def batches(steps):
    rng = np.random.default_rng(2)
    measured = rng.uniform(0, 1, (steps * FLAGS.measured, 2)).astype("float32")
    noisy = (temperature(measured) + rng.normal(0, 0.02, (len(measured), 1))).astype("float32")
    inner = rng.uniform(0, 1, (steps * FLAGS.collocated, 2)).astype("float32")
    split = lambda rows, size: tf.data.Dataset.from_tensor_slices(rows).batch(size)
    return tf.data.Dataset.zip((split(measured, FLAGS.measured), split(noisy, FLAGS.measured), split(inner, FLAGS.collocated)))


class Rod(keras.Model):

    def __init__(self):
        super().__init__()
        self.body = keras.Sequential([keras.Input((2,)), keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(1)])
        self.raw_k = self.add_weight(shape=(), initializer=keras.initializers.Constant(-1.0), name="raw_k")

    @property
    def k(self):
        return tf.nn.softplus(tf.convert_to_tensor(self.raw_k))

    def call(self, place):
        return self.body(place)

    def residual(self, place):
        """u_t - k u_xx at each place."""
        with tf.GradientTape() as outer:
            outer.watch(place)
            with tf.GradientTape() as inner:
                inner.watch(place)
                u = self.body(place)
            first = inner.gradient(u, place)
            slope = first[:, 0]
        second = outer.gradient(slope, place)
        return first[:, 1] - self.k * second[:, 0]


class Fitter:

    def __init__(self):
        self.strategy = tf.distribute.MirroredStrategy()
        with self.strategy.scope():
            self.rod = Rod()
            self.rod(np.zeros((1, 2), "float32"))
            self.optimizer = keras.optimizers.SGD(FLAGS.rate, momentum=0.9)
            self.optimizer.build(self.rod.trainable_variables)
            self.balance = tf.Variable(1.0, trainable=False, aggregation=tf.VariableAggregation.MEAN)

    def terms(self, batch):
        """This replica's parts of both terms; they add up to those of the whole batch."""
        data = tf.reduce_sum(tf.square(self.rod(batch.place) - batch.temperature)) / FLAGS.measured
        physics = tf.reduce_sum(tf.square(self.rod.residual(batch.inner))) / FLAGS.collocated
        return data, physics

    def update(self, *parts):
        batch = Batch(*parts)
        context = tf.distribute.get_replica_context()
        with tf.GradientTape() as tape:
            data, physics = self.terms(batch)
            loss = data + self.balance * physics
        variables = self.rod.trainable_variables
        gradients = context.all_reduce("SUM", tape.gradient(loss, variables))
        gradients, norm = tf.clip_by_global_norm(gradients, FLAGS.limit)
        self.optimizer.apply_gradients(zip([g / context.num_replicas_in_sync for g in gradients], variables))
        whole_data, whole_physics = context.all_reduce("SUM", [data, physics])
        ratio = tf.clip_by_value(whole_data / (whole_physics + 1e-6), 0.05, 5.0)
        self.balance.assign(0.9 * self.balance + 0.1 * ratio)
        return data, physics, norm

    @tf.function
    def step(self, *parts):
        data, physics, norm = self.strategy.run(self.update, args=parts)
        both = [self.strategy.reduce("SUM", term, axis=None) for term in (data, physics)]
        return both + [self.strategy.reduce("MEAN", norm, axis=None)]

    def fit(self, steps):
        with open(FLAGS.log, "w") as log:
            for number, parts in enumerate(self.strategy.experimental_distribute_dataset(batches(steps))):
                data, physics, norm = (float(value) for value in self.step(*parts))
                log.write(f"{number},{data:.6f},{physics:.6f},{norm:.6f}\n")
                if number % 8 == 7:
                    print(f"step {number + 1}: data {data:.5f} physics {physics:.5f} k {float(self.rod.k):.5f} balance {float(self.balance.numpy()):.4f}")

    def error(self):
        grid = np.stack(np.meshgrid(np.linspace(0, 1, 11), np.linspace(0, 1, 11)), -1).reshape(-1, 2).astype("float32")
        return float(np.sqrt(np.mean((self.rod(grid).numpy() - temperature(grid)) ** 2)))


def main(_):
    keras.utils.set_random_seed(9)
    fitter = Fitter()
    fitter.fit(FLAGS.steps)
    weights = sum(float(np.abs(w).sum()) for w in fitter.rod.get_weights())
    print(f"k {float(fitter.rod.k):.6f} error {fitter.error():.6f} balance {float(fitter.balance.numpy()):.6f} weights {weights:.5f}")


if __name__ == "__main__":
    app.run(main)
