"""A network for the acceleration of a pendulum, without Keras, and gradient descent with momentum."""

import tensorflow as tf


class Dense(tf.Module):
    def __init__(self, inputs, outputs, seed, name=None):
        super().__init__(name)
        start = tf.random.stateless_normal((inputs, outputs), seed=(seed, 0))
        self.kernel = tf.Variable(start / inputs**0.5)
        self.bias = tf.Variable(tf.zeros(outputs))

    def __call__(self, x):
        return x @ self.kernel + self.bias


class Acceleration(tf.Module):
    """Acceleration by the angle, the speed and the torque, in units of their mean size."""

    def __init__(self, width=24):
        super().__init__()
        self.hidden = [Dense(3, width, 1), Dense(width, width, 2)]
        self.output = Dense(width, 1, 3)
        self.size = tf.Variable(
            tf.ones(3), trainable=False, aggregation=tf.VariableAggregation.MEAN
        )

    def see(self, inputs):
        """Lets the mean size follow that of a batch."""
        self.size.assign(0.9 * self.size + 0.1 * tf.reduce_mean(tf.abs(inputs), axis=0))

    def __call__(self, inputs):
        x = inputs / self.size
        for layer in self.hidden:
            x = tf.tanh(layer(x))
        return self.output(x)


def simulate(model, state, torques, step=0.1):
    """Returns the angles and speeds after each torque, by the midpoint method."""
    states = []
    for torque in tf.unstack(torques, axis=1):
        middle = state + 0.5 * step * slope(model, state, torque)
        state = state + step * slope(model, middle, torque)
        states.append(state)
    return tf.stack(states, axis=1)


def slope(model, state, torque):
    inputs = tf.concat([state, torque[:, None]], axis=1)
    return tf.concat([state[:, 1:], model(inputs)], axis=1)


class Momentum(tf.Module):
    def __init__(self, variables, rate, share=0.9):
        super().__init__()
        self.share = share
        self.rate = tf.Variable(rate, trainable=False)
        self.velocities = [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]

    def update(self, gradients, variables):
        for gradient, variable, velocity in zip(gradients, variables, self.velocities):
            velocity.assign(self.share * velocity - self.rate * gradient)
            variable.assign_add(velocity)
