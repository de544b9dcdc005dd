"""Barlow twins for spectra: learns a code without labels, and then tests it with a ridge regression.

Everything that concerns the statistics of a batch is computed over all replicas.
"""
import keras
import numpy as np
import tensorflow as tf
from spectra import BANDS, minerals, views

BATCH, EPOCHS, CODE, OFF_DIAGONAL = 40, 6, 12, 0.02


class Sgdr(keras.optimizers.Optimizer):
    """SGD whose step in each matrix is scaled by trust = |w| / |g|, with momentum (LARS)."""

    def __init__(self, learning_rate=0.1, momentum=0.8, trust=0.05, name="sgdr", **options):
        super().__init__(learning_rate=learning_rate, name=name, **options)
        self.momentum, self.trust = momentum, trust

    def build(self, variables):
        if not self.built:
            super().build(variables)
            self.velocities = self.add_optimizer_variables(variables, "velocity")

    def update_step(self, gradient, variable, learning_rate):
        rate = tf.cast(learning_rate, variable.dtype)
        if len(variable.shape) > 1:
            ratio = tf.norm(tf.convert_to_tensor(variable)) / (tf.norm(gradient) + 1e-6)
            gradient = gradient * self.trust * ratio
        velocity = self.velocities[self._get_variable_index(variable)]
        self.assign(velocity, self.momentum * velocity - rate * gradient)
        self.assign_add(variable, velocity)


class Encoder(keras.Model):
    def __init__(self, widths=(32, 32, CODE), seed=0):
        super().__init__()
        layers = [keras.layers.Dense(n, kernel_initializer=keras.initializers.HeNormal(seed + k))
                  for k, n in enumerate(widths)]
        self.stack = tuple(layers)

    def call(self, x):
        *hidden, last = self.stack
        for layer in hidden:
            x = tf.nn.leaky_relu(layer(x))
        return last(x)


class Twins(keras.Model):
    def __init__(self, seed=0):
        super().__init__()
        self.encoder = Encoder(seed=seed)
        self.projector = keras.layers.Dense(CODE, kernel_initializer=keras.initializers.GlorotUniform(seed + 9))

    def call(self, pair):
        first, second = pair
        return self.projector(self.encoder(first)), self.projector(self.encoder(second))


def whitened(codes):
    return (codes - tf.reduce_mean(codes, 0)) / tf.sqrt(tf.math.reduce_variance(codes, 0) + 1e-4)


def redundancy(one, two, replica):
    """The loss of the batch, of which each replica returns its share."""
    one, two = replica.all_gather(one, axis=0), replica.all_gather(two, axis=0)
    correlation = tf.matmul(whitened(one), whitened(two), transpose_a=True) / tf.cast(len(one), tf.float32)
    on = tf.reduce_sum((tf.linalg.diag_part(correlation) - 1) ** 2)
    off = tf.reduce_sum(tf.linalg.set_diag(correlation, tf.zeros(CODE)) ** 2)
    return (on + OFF_DIAGONAL * off) / replica.num_replicas_in_sync


def main():
    strategy = tf.distribute.MirroredStrategy()
    spectra, kind = minerals(240, seed=5)
    mean, deviation = spectra.mean(0), spectra.std(0)
    spectra = (spectra - mean) / deviation
    with strategy.scope():
        model = Twins(seed=3)
        model((tf.zeros((1, BANDS)),) * 2)
        optimizer = Sgdr()
        optimizer.build(model.trainable_variables)

    def step(first, second):
        with tf.GradientTape() as tape:
            loss = redundancy(*model((first, second)), tf.distribute.get_replica_context())
        gradients = tape.gradient(loss, model.trainable_variables)
        replica = tf.distribute.get_replica_context()
        gradients = replica.all_reduce("SUM", gradients)  # the ratio in update_step is that of the sum
        share = [each / replica.num_replicas_in_sync for each in gradients]
        optimizer.apply_gradients(zip(share, model.trainable_variables))
        return loss

    @tf.function
    def train_step(pair):
        return strategy.reduce("SUM", strategy.run(step, args=pair), axis=None)

    for epoch in range(EPOCHS):
        data = strategy.experimental_distribute_dataset(views(spectra, epoch, BATCH))
        losses = [train_step(pair).numpy() for pair in data]
        print(f"epoch {epoch}: {np.mean(losses):.4f}")

    # the probe has its own encoder: only the encoder's weights go there
    path = tf.train.Checkpoint(encoder=model.encoder).write("encoder")
    encoder = Encoder(seed=77)
    encoder(tf.zeros((1, BANDS)))
    tf.train.Checkpoint(encoder=encoder).read(path).assert_consumed()

    def codes(spectra):
        return np.c_[encoder(spectra).numpy(), np.ones(len(spectra))]

    test, answer = minerals(120, seed=6)
    known, unknown = codes(spectra[::6]), codes((test - mean) / deviation)
    ridge = np.linalg.solve(known.T @ known + 0.5 * np.eye(CODE + 1), known.T @ np.eye(5)[kind[::6]])
    right = np.mean((unknown @ ridge).argmax(1) == answer)
    print(f"last loss {np.mean(losses):.4f}, probe {right:.4f}, codes {np.abs(unknown).mean():.4f}")


if __name__ == "__main__":
    main()
