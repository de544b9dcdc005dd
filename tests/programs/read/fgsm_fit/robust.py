"""Adversarial training (Goodfellow et al., 2015) in `fit`: half of the loss is that of examples moved against the model."""
import argparse

import keras
import numpy as np
import tensorflow as tf


@keras.saving.register_keras_serializable("robust")
class Robust(keras.Model):
    """A classifier of spectra that trains on examples and on attacked ones."""

    def __init__(self, units=24, classes=3, epsilon=0.1, share=0.5, **options):
        super().__init__(**options)
        self.units, self.classes, self.epsilon, self.share = units, classes, epsilon, share
        self.hidden = keras.layers.Dense(units, activation="relu")
        self.logits = keras.layers.Dense(classes)
        self.loss_mean = keras.metrics.Mean(name="loss")
        self.clean = keras.metrics.SparseCategoricalAccuracy(name="clean")
        self.attacked = keras.metrics.SparseCategoricalAccuracy(name="attacked")

    def build(self, shape):
        self.hidden.build(shape)
        self.logits.build((shape[0], self.units))

    def call(self, x):
        return self.logits(self.hidden(x))

    def get_config(self):
        return {**super().get_config(), "units": self.units, "classes": self.classes,
                "epsilon": self.epsilon, "share": self.share}

    @property
    def metrics(self):
        return [self.loss_mean, self.clean, self.attacked]

    def attack(self, x, y):
        """Moves each example by epsilon to where its loss grows."""
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(keras.losses.sparse_categorical_crossentropy(y, self(x), from_logits=True))
        return tf.stop_gradient(x + self.epsilon * tf.sign(tape.gradient(loss, x)))

    def train_step(self, data):
        x, y = data
        moved = self.attack(x, y)
        with tf.GradientTape() as tape:
            clean, attacked = self(x, training=True), self(moved, training=True)
            loss = (1 - self.share) * self.compute_loss(x, y, clean) + self.share * self.compute_loss(x, y, attacked)
        weights = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, weights), weights)
        # compute_loss gives the share of this replica
        self.loss_mean.update_state(loss * tf.distribute.get_strategy().num_replicas_in_sync)
        return self.counted(y, clean, attacked)

    def test_step(self, data):
        x, y = data
        clean, attacked = self(x), self(self.attack(x, y))
        losses = keras.losses.sparse_categorical_crossentropy(y, attacked, from_logits=True)
        self.loss_mean.update_state(losses)
        return self.counted(y, clean, attacked)

    def counted(self, y, clean, attacked):
        self.clean.update_state(y, clean)
        self.attacked.update_state(y, attacked)
        return {metric.name: metric.result() for metric in self.metrics}


def spectra(rows, seed, classes=3, bands=16):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows)
    peaks = np.exp(-((np.arange(bands) - 4 * (y[:, None] + 1)) ** 2) / 6.0)
    return np.float32(peaks + 0.35 * rng.normal(size=(rows, bands))), np.int32(y)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epsilon", type=float, default=0.25)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args()

    keras.utils.set_random_seed(2)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = Robust(epsilon=args.epsilon)
        model.build((None, 16))
        model.compile(
            optimizer=keras.optimizers.SGD(0.2, momentum=0.9),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
    data = tf.data.Dataset.from_tensor_slices(spectra(320, seed=1)).batch(args.batch, drop_remainder=True)
    history = model.fit(data, epochs=args.epochs, verbose=2).history
    model.save("robust.keras")

    with strategy.scope():
        loaded = keras.saving.load_model("robust.keras")
    test = tf.data.Dataset.from_tensor_slices(spectra(192, seed=2)).batch(args.batch)
    result = loaded.evaluate(test, verbose=0, return_dict=True)
    print(f"training loss {history['loss'][-1]:.4f}, test: loss under attack {result['loss']:.4f} "
          f"clean {result['clean']:.4f} attacked {result['attacked']:.4f}")


if __name__ == "__main__":
    main()
