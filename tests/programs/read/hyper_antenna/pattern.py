"""Radiation patterns of dipole arrays: a hypernetwork reads the geometry and writes the weights of the network that
maps an angle to a gain."""
import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf

ANGLES = 12


class PatternModel(keras.Model):
    """call((geometry, angle)) returns the gain at each angle."""

    def __init__(self, units=10, batch=40):
        super().__init__()
        self.units, self.batch = units, batch
        self.reader = keras.layers.Dense(24, activation="tanh")
        self.writer = keras.layers.Dense(units * (3 + 1), kernel_initializer=keras.initializers.RandomNormal(0, 0.15))
        self.floor = self.add_weight(name="floor", shape=(), initializer="zeros")
        self.error = keras.metrics.Mean(name="loss")

    def build(self, shapes):
        geometry, _ = shapes
        self.reader.build(geometry)
        self.writer.build((geometry[0], 24))
        super().build(shapes)

    def call(self, inputs):
        geometry, angle = inputs
        written = tf.reshape(self.writer(self.reader(geometry)), [-1, self.units, 4])
        seen = tf.stack([tf.sin(angle), tf.cos(angle), tf.ones_like(angle)], axis=-1)
        hidden = tf.nn.tanh(tf.einsum("bas,bus->bau", seen, 3.0 * written[..., :3]))
        return tf.einsum("bau,bu->ba", hidden, written[..., 3]) + self.floor

    def relative_errors(self, gain, guess):
        """The squared error of each pattern in units of its power."""
        return tf.reduce_sum((gain - guess) ** 2, axis=1) / (0.1 + tf.reduce_sum(gain**2, axis=1))

    def train_step(self, data):
        inputs, gain = data
        with tf.GradientTape() as tape:
            each = self.relative_errors(gain, self(inputs, training=True))
            loss = tf.nn.compute_average_loss(each, global_batch_size=self.batch)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.error.update_state(each)
        return {"loss": self.error.result()}

    @property
    def metrics(self):
        return [self.error]


def arrays(count, seed):
    """Gain of two dipoles, by their distance, phase, ratio and tilt."""
    rng = np.random.default_rng(seed)
    geometry = rng.uniform(-1, 1, (count, 4))
    angle = np.sort(rng.uniform(-np.pi, np.pi, (count, ANGLES)), axis=1)
    distance, phase, ratio, tilt = (column[:, None] for column in geometry.T)
    lobe = np.cos((1.5 + distance) * np.cos(angle - tilt) + 2 * phase)
    gain = 0.4 + (0.5 + 0.3 * ratio) * lobe
    return (geometry.astype("float32"), angle.astype("float32")), gain.astype("float32")


def held_out_error(strategy, model, data):
    """The mean relative error over all patterns, the last few of which fill no batch."""
    measured = strategy.experimental_distribute_dataset(data)

    @tf.function
    def errors(inputs, gain):
        return strategy.run(lambda i, g: model.relative_errors(g, model(i, training=False)), args=(inputs, gain))

    found = [strategy.gather(errors(*batch), axis=0).numpy() for batch in measured]
    return float(np.mean(np.concatenate(found)))


def main():
    reader = argparse.ArgumentParser()
    reader.add_argument("--epochs", type=int, default=5)
    reader.add_argument("--batch", type=int, default=40)
    reader.add_argument("--rate", type=float, default=0.05)
    told = reader.parse_args()
    keras.utils.set_random_seed(77)
    strategy = tf.distribute.MirroredStrategy()
    known = tf.data.Dataset.from_tensor_slices(arrays(320, 1)).batch(told.batch, drop_remainder=True)
    fresh = tf.data.Dataset.from_tensor_slices(arrays(83, 2)).batch(told.batch)
    with strategy.scope():
        model = PatternModel(batch=told.batch)
        model.build([(None, 4), (None, ANGLES)])
        model.compile(optimizer=keras.optimizers.SGD(told.rate, momentum=0.9))
    history = model.fit(known, epochs=told.epochs, verbose=0).history["loss"]
    print("training:", " ".join(f"{loss:.4f}" for loss in history))
    size = sum(float(np.abs(weight.numpy()).sum()) for weight in model.trainable_variables)
    print(f"trained {history[-1]:.5f} held out {held_out_error(strategy, model, fresh):.5f}"
          f" floor {float(model.floor.numpy()):.5f} weights {size:.4f}")


if __name__ == "__main__":
    main()
