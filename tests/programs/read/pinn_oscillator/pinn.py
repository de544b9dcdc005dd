"""Inverse problem: damping and stiffness of an oscillator from noisy positions, with a physics-informed network.

u'' + damping * u' + stiffness * u = 0 is asked for at collocation points, and u(t) = position at the measured times.
"""
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf


@dataclass(frozen=True)
class Setting:
    batch: int = 24
    points: int = 240
    epochs: int = 5
    rate: float = 0.01
    physics_rate: float = 4.0  # times that of the network
    residual_weight: float = 0.1
    start_weight: float = 0.5
    seed: int = 11


TRUE_DAMPING, TRUE_STIFFNESS = 0.4, 4.0


def position(t):
    decay = TRUE_DAMPING / 2
    frequency = np.sqrt(TRUE_STIFFNESS - decay**2)
    return np.exp(-decay * t) * (np.cos(frequency * t) + decay / frequency * np.sin(frequency * t))


class Oscillator(keras.Model):
    def __init__(self, width=20):
        super().__init__()
        self.first = keras.layers.Dense(width, activation="tanh")
        self.second = keras.layers.Dense(width, activation="tanh")
        self.out = keras.layers.Dense(1)
        self.damping = self.add_weight(shape=(), initializer=keras.initializers.Constant(0.1), name="damping")
        self.stiffness = self.add_weight(shape=(), initializer=keras.initializers.Constant(2.0), name="stiffness")

    def call(self, t):
        return self.out(self.second(self.first(t / 2.0 - 1.0)))

    def residual(self, t):
        with tf.GradientTape() as outer:
            outer.watch(t)
            with tf.GradientTape() as inner:
                inner.watch(t)
                u = self(t)
            velocity = inner.gradient(u, t)
        acceleration = outer.gradient(velocity, t)
        return acceleration + self.damping * velocity + self.stiffness * u


def measured(setting):
    rng = np.random.default_rng(setting.seed)
    t = rng.uniform(0, 4, (setting.points, 1))
    u = position(t) + 0.02 * rng.normal(size=t.shape)
    free = rng.uniform(0, 4, (setting.points, 1))
    rows = tuple(np.float32(column) for column in (t, u, free))
    data = tf.data.Dataset.from_tensor_slices(rows)
    return data.shuffle(setting.points, seed=setting.seed).batch(setting.batch, drop_remainder=True)


def main(setting=Setting()):
    keras.utils.set_random_seed(setting.seed)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = Oscillator()
        model(tf.zeros((1, 1)))
        weights = model.trainable_variables
        optimizer = keras.optimizers.SGD(setting.rate, momentum=0.9)
        optimizer.build(weights)
    rates = [setting.physics_rate if weight.name in ("damping", "stiffness") else 1.0 for weight in weights]

    def learn(t, u, free):
        with tf.GradientTape() as tape:
            errors = tf.square(model(t) - u)[:, 0]
            physics = tf.square(model.residual(free))[:, 0]
            per_example = errors + setting.residual_weight * physics
            at_start = tf.reduce_sum(tf.square(model(tf.zeros((1, 1))) - 1.0))
            loss = tf.nn.compute_average_loss(per_example, global_batch_size=setting.batch)
            loss += tf.nn.scale_regularization_loss(setting.start_weight * at_start)
        gradients = tape.gradient(loss, weights)
        optimizer.apply_gradients([(rate * each, weight) for rate, each, weight in zip(rates, gradients, weights)])
        return loss

    @tf.function
    def train_step(t, u, free):
        return strategy.reduce("SUM", strategy.run(learn, args=(t, u, free)), axis=None)

    data = strategy.experimental_distribute_dataset(measured(setting))
    for epoch in range(setting.epochs):
        losses = [float(train_step(*batch)) for batch in data]
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}  damping {float(model.damping.numpy()):.3f}"
              f"  stiffness {float(model.stiffness.numpy()):.3f}")
    times = np.linspace(0, 4, 41, dtype="float32")[:, None]
    fit = np.sqrt(np.mean((model(tf.constant(times)).numpy() - position(times)) ** 2))
    print(f"fit {fit:.4f} damping {float(model.damping.numpy()):.4f} stiffness {float(model.stiffness.numpy()):.4f}")


if __name__ == "__main__":
    main()
