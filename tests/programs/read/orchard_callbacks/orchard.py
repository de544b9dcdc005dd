"""Ripeness of apples from near-infrared spectra. `fit` with callbacks; a run that was stopped goes on by itself.

The network of the first stage is kept in first.weights.h5, and the second stage fits it to the late harvest.
"""
import json
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf

WAVES, BATCH = 20, 32
EPOCHS, LATE_EPOCHS = 6, 3


def spectra(count, seed, late=0.0):
    """Absorption at twenty wave lengths and the sugar in degrees Brix, of apples of one day."""
    rng = np.random.default_rng(seed)
    sugar = rng.normal(0, 1, count) + late
    wave = np.linspace(0, 1, WAVES)
    x = np.outer(sugar, np.sin(4 * wave)) + np.outer(rng.normal(size=count), wave) + 0.4 * rng.normal(size=(count, WAVES))
    return x.astype("float32"), (sugar + 0.3 * late * sugar**2)[:, None].astype("float32")


class Harvest(keras.callbacks.Callback):
    """Lowers the rate when the held-out error has not become clearly better. A file keeps the errors of all epochs."""

    def __init__(self, path, factor=0.6, gain=0.85):
        super().__init__()
        self.path, self.factor, self.gain = Path(path), factor, gain

    def on_train_begin(self, logs=None):
        self.errors = json.loads(self.path.read_text()) if self.path.exists() else []

    def on_epoch_end(self, epoch, logs):
        del self.errors[epoch:]
        if logs["val_loss"] > self.gain * min(self.errors, default=np.inf):
            self.model.optimizer.learning_rate = self.factor * self.model.optimizer.learning_rate.numpy()
        self.errors.append(float(logs["val_loss"]))
        written = self.path.with_suffix(".new")
        written.write_text(json.dumps(self.errors))
        written.replace(self.path)


def ordered(data):
    """A dataset whose order is the same in every epoch, so that a stop does not matter."""
    order = np.random.default_rng(15).permutation(len(data[0]))
    return tf.data.Dataset.from_tensor_slices(tuple(column[order] for column in data)).batch(BATCH)


def network():
    return keras.Sequential([
        keras.Input((WAVES,)),
        keras.layers.Dense(16, activation="tanh"),
        keras.layers.Dense(8, activation="tanh"),
        keras.layers.Dense(1),
    ])


def compiled(strategy, rate):
    with strategy.scope():
        model = network()
        model.compile(keras.optimizers.SGD(rate, momentum=0.9), loss="mse")
    return model


def main():
    keras.utils.set_random_seed(52)
    strategy = tf.distribute.MirroredStrategy()
    early, held = spectra(256, 1), spectra(96, 2)
    model = compiled(strategy, 0.02)
    callbacks = [
        Harvest("harvest.json"),
        keras.callbacks.BackupAndRestore("backup", delete_checkpoint=False),
    ]
    model.fit(ordered(early), epochs=EPOCHS, validation_data=held, validation_batch_size=BATCH, callbacks=callbacks, verbose=0)
    error = model.evaluate(*held, batch_size=BATCH, verbose=0)
    rate = float(model.optimizer.learning_rate.numpy())
    print(f"first stage: error {error:.5f}, rate {rate:.5f}", flush=True)
    model.save_weights("first.weights.h5")
    later = compiled(strategy, 0.005)
    later.load_weights("first.weights.h5")
    history = later.fit(ordered(spectra(128, 3, late=0.8)), epochs=LATE_EPOCHS, verbose=0)
    late = later.evaluate(*spectra(96, 4, late=0.8), batch_size=BATCH, verbose=0)
    size = sum(float(np.abs(weight.numpy()).sum()) for weight in later.trainable_variables)
    print(f"first {error:.5f} rate {rate:.5f} late {late:.5f} weights {size:.4f} after {len(history.epoch)}.0 epochs")


if __name__ == "__main__":
    main()
