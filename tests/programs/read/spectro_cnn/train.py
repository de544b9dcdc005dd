#!/usr/bin/env python
"""Classifies machine sounds; keeps the best epoch as a .keras file and reports on it."""
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import losses
import model as models
from spectrograms import sounds

BATCH, EPOCHS = 32, 4
SAMPLES = 161
BEST = Path(__file__).resolve().parent / "best.keras"


def feed(count, seed, drop=True):
    images, kinds = sounds(count, seed)
    return tf.data.Dataset.from_tensor_slices((images, kinds)).batch(BATCH, drop_remainder=drop)


class Log(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch}: loss {logs['loss']:.5f} val_loss {logs['val_loss']:.5f} val_accuracy {logs['val_accuracy']:.4f}")


def main():
    keras.utils.set_random_seed(23)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        net = models.build()
        net.compile(
            optimizer=keras.optimizers.SGD(0.1, momentum=0.9),
            loss=losses.FocalLoss(),
            metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
        )
    keep = keras.callbacks.ModelCheckpoint(str(BEST), monitor="val_loss", save_best_only=True)
    net.fit(feed(SAMPLES, 1), validation_data=feed(96, 2), epochs=EPOCHS, callbacks=[keep, Log()], verbose=0)

    last = net.evaluate(feed(96, 3), return_dict=True, verbose=0)
    with strategy.scope():
        best = keras.models.load_model(BEST)
    kept = best.evaluate(feed(96, 3), return_dict=True, verbose=0)
    size = sum(float(np.abs(w).sum()) for w in net.get_weights())
    print(f"final: last {last['loss']:.6f} kept {kept['loss']:.6f} weights {size:.6f}")


if __name__ == "__main__":
    main()
