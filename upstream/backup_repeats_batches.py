import contextlib
import tempfile

import keras
import tensorflow as tf


class Stop(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if int(self.model.optimizer.iterations.numpy()) == 7:
            raise KeyboardInterrupt


def steps_of_fit(folder, *callbacks):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    backup = keras.callbacks.BackupAndRestore(folder, save_freq=1)
    x = tf.ones((20, 1))
    with contextlib.suppress(KeyboardInterrupt):
        model.fit(x, x, batch_size=4, epochs=2, verbose=0, callbacks=[backup, *callbacks])
    return int(model.optimizer.iterations.numpy())


folder = tempfile.mkdtemp()
print(f"steps until the interruption: got {steps_of_fit(folder, Stop())}, expected 7")
print(f"steps of 2 epochs of 5 batches, interrupted once: got {steps_of_fit(folder)}, expected 10")
