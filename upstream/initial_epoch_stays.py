import contextlib
import tempfile

import keras
import tensorflow as tf


class Stop(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 4:
            raise KeyboardInterrupt


def fit(model, epochs, *callbacks):
    with contextlib.suppress(KeyboardInterrupt):
        model.fit(tf.ones((4, 1)), tf.ones((4, 1)), epochs=epochs, verbose=0, callbacks=callbacks)
    return model.history.epoch


backup = keras.callbacks.BackupAndRestore(tempfile.mkdtemp())
first, second = [keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)]) for _ in range(2)]
first.compile("sgd", "mse")
second.compile("sgd", "mse")
fit(first, 6, backup, Stop())
print(f"epochs of the run that goes on: got {fit(second, 6, backup)}, expected [4, 5]")
print(f"epochs of fit(epochs=3) after it: got {fit(second, 3)}, expected [0, 1, 2]")
