"""Who books a ferry and does not come? Trains with fit, keeps the best epoch, and tunes that a little at a low rate.

It may be stopped at any time: a new start goes on after the last epoch that was completed.
"""
import json
import os

import keras
import numpy as np
import tensorflow as tf

BATCH, EPOCHS, TUNING, RATE = 32, 7, 2, 0.1
BEST, NOTE = "best.keras", "best.json"


def bookings(count, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 12))
    x[:, 0] = np.sort(x[:, 0])  # days before departure
    odds = x[:, 0] - 0.7 * x[:, 1] * x[:, 2] + 0.4 * x[:, 3] - 0.8
    y = odds + 1.2 * rng.normal(size=count) > 0
    return x.astype("float32"), y.astype("float32")[:, None]


@keras.saving.register_keras_serializable("ferry")
def focal(labels, chances):
    """Cross-entropy that cares less for what is clear already."""
    right = tf.clip_by_value(labels * chances + (1 - labels) * (1 - chances), 1e-6, 1.0)
    return tf.reduce_mean(-tf.square(1 - right) * tf.math.log(right), axis=-1)


def make_model(rate):
    start = [keras.initializers.GlorotUniform(seed=seed) for seed in (1, 2, 3)]
    model = keras.Sequential([
        keras.Input((12,)),
        keras.layers.Dense(48, "relu", kernel_initializer=start[0]),
        keras.layers.Dense(24, "relu", kernel_initializer=start[1]),
        keras.layers.Dense(1, "sigmoid", kernel_initializer=start[2]),
    ])
    model.compile(
        keras.optimizers.SGD(rate, momentum=0.9), loss=focal,
        metrics=[keras.metrics.F1Score("micro", threshold=0.5, name="f1")])
    return model


class KeepBest(keras.callbacks.ModelCheckpoint):
    """Notes the value of the best epoch beside its file, for a later start."""

    def __init__(self):
        known = None
        if os.path.exists(NOTE):
            with open(NOTE) as file:
                known = json.load(file)["val_loss"]
        super().__init__(BEST, save_best_only=True, mode="min", initial_value_threshold=known)

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        with open(NOTE, "w") as file:
            json.dump({"val_loss": float(self.best)}, file)


def batches(x, y):
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)


def main():
    keras.utils.set_random_seed(5)
    train, dev = batches(*bookings(256, 1)), batches(*bookings(192, 2))
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = make_model(RATE)
    backup = keras.callbacks.BackupAndRestore("backup", delete_checkpoint=False)
    report = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: print(
        f"epoch {epoch + 1}: " + " ".join(f"{name} {value:.4f}" for name, value in sorted(logs.items()))))
    model.fit(train, epochs=EPOCHS, validation_data=dev, verbose=0, callbacks=[report, KeepBest(), backup])

    with strategy.scope():
        tuned = keras.models.load_model(BEST)
        tuned.optimizer.learning_rate = RATE / 10
    best = tuned.evaluate(dev, verbose=0, return_dict=True)
    tuned.fit(train, epochs=TUNING, verbose=0, callbacks=[report])
    final = tuned.evaluate(dev, verbose=0, return_dict=True)
    print(f"best dev loss {best['loss']:.4f} f1 {best['f1']:.4f}; "
          f"tuned dev loss {final['loss']:.4f} f1 {final['f1']:.4f}")


if __name__ == "__main__":
    main()
