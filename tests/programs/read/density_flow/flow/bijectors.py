"""Invertible layers. Each returns its output and the logarithm of its volume change for each row."""
import tensorflow as tf


def everywhere(total):
    """The sum over all replicas."""
    return tf.distribute.get_replica_context().all_reduce("SUM", total)


class Whiten(tf.Module):
    """Batch normalisation as a bijector: moving statistics of whole batches, and none that are learned."""

    def __init__(self, dims, momentum=0.8, name=None):
        super().__init__(name=name)
        self.momentum = momentum
        self.mean = tf.Variable(tf.zeros(dims), trainable=False, name="mean")
        self.variance = tf.Variable(tf.ones(dims), trainable=False, name="variance")

    def update(self, x):
        rows = everywhere(tf.cast(tf.shape(x)[0], x.dtype))
        mean = everywhere(tf.reduce_sum(x, 0)) / rows
        variance = everywhere(tf.reduce_sum((x - mean) ** 2, 0)) / rows
        self.mean.assign(self.momentum * self.mean + (1 - self.momentum) * mean)
        self.variance.assign(self.momentum * self.variance + (1 - self.momentum) * variance)

    def __call__(self, x, training):
        if training:
            self.update(tf.stop_gradient(x))
        y = (x - self.mean) / tf.sqrt(self.variance + 1e-3)
        return y, -0.5 * tf.reduce_sum(tf.math.log(self.variance + 1e-3)) * tf.ones(tf.shape(x)[0])


class Coupling(tf.Module):
    """One half of the columns stays, and decides how the other one is scaled and moved."""

    def __init__(self, dims, width, flip, seed, name=None):
        super().__init__(name=name)
        self.flip, half = flip, dims // 2
        self.w1 = tf.Variable(0.5 * tf.random.stateless_normal((half, width), (seed, 1)), name="w1")
        self.b1 = tf.Variable(tf.zeros(width), name="b1")
        self.w2 = tf.Variable(0.1 * tf.random.stateless_normal((width, 2 * half), (seed, 2)), name="w2")
        self.b2 = tf.Variable(tf.zeros(2 * half), name="b2")

    def __call__(self, x, training):
        first, second = tf.split(x, 2, -1)
        if self.flip:
            first, second = second, first
        scale, move = tf.split(tf.tanh(first @ self.w1 + self.b1) @ self.w2 + self.b2, 2, -1)
        scale = tf.tanh(scale)
        second = second * tf.exp(scale) + move
        parts = [second, first] if self.flip else [first, second]
        return tf.concat(parts, -1), tf.reduce_sum(scale, -1)


class RealNVP(tf.Module):
    def __init__(self, dims, width=16, depth=4):
        super().__init__(name="real_nvp")
        self.layers = []
        for i in range(depth):
            self.layers += [Whiten(dims), Coupling(dims, width, bool(i % 2), seed=i)]

    def log_density(self, x, training=False):
        volume = 0.0
        for layer in self.layers:
            x, change = layer(x, training)
            volume += change
        return volume - 0.5 * tf.reduce_sum(x**2 + tf.math.log(2 * 3.14159265), -1)
