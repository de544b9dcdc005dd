"""Forecasts the water level of a harbour six hours ahead from the last day and a half of a gauge."""
import argparse
import json
import os

import keras
import numpy as np
import tensorflow as tf

HISTORY, AHEAD = 36, 6


def gauge(hours, seed):
    """The tides of the moon and the sun, a slow surge, and noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    level = np.cos(2 * np.pi * t / 12.42) + 0.4 * np.cos(2 * np.pi * t / 12.0 + 0.7)
    surge = np.convolve(rng.normal(size=hours + 47), np.ones(48) / 4, "valid")
    return np.float32(level + surge + 0.3 * rng.normal(size=hours))


def windows(level):
    starts = np.arange(len(level) - HISTORY - AHEAD)
    x = np.stack([level[s:s + HISTORY] for s in starts])[..., None]
    y = np.stack([level[s + HISTORY:s + HISTORY + AHEAD] for s in starts])
    return x, y


class Memory:
    """Lets a callback of Keras remember across restarts what it has counted at the end of each epoch."""

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        self.notes = os.path.join(self.folder, type(self).__name__ + ".json")
        self.counted = None

    def on_epoch_begin(self, epoch, logs=None):
        super().on_epoch_begin(epoch, logs)
        if self.counted is None:  # the first epoch of this start
            self.counted = self.read() if epoch else {}
            self.__dict__.update(self.counted.get(str(epoch - 1), {}))

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        self.counted[str(epoch)] = {
            key: float(self.__dict__[key]) for key in ("best", "wait", "cooldown_counter") if key in self.__dict__}
        with open(self.notes, "w") as file:
            json.dump(self.counted, file)

    def read(self):
        with open(self.notes) as file:
            return json.load(file)


class LowerRate(Memory, keras.callbacks.ReduceLROnPlateau):
    folder = "run"


class KeepBest(Memory, keras.callbacks.ModelCheckpoint):
    folder = "run"


class Report(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        rate = float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))
        print(f"epoch {epoch + 1}: loss {logs['loss']:.5f} val_loss {logs['val_loss']:.5f} "
              f"val_mae {logs['val_mae']:.5f} rate {rate:.5f}")


def make_model(units):
    draw = iter(keras.initializers.GlorotUniform(seed=n) for n in range(10))
    inputs = keras.Input((HISTORY, 1))
    x = keras.layers.Conv1D(8, 5, strides=2, activation="relu", kernel_initializer=next(draw))(inputs)
    x = keras.layers.Flatten()(x)
    x = keras.layers.Dense(units, activation="tanh", kernel_initializer=next(draw))(x)
    return keras.Model(inputs, keras.layers.Dense(AHEAD, kernel_initializer=next(draw))(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--units", type=int, default=48)
    args = parser.parse_args()
    os.makedirs("run", exist_ok=True)

    level = gauge(460, seed=21)
    x, y = windows(level[:330])
    val_x, val_y = windows(level[330:])
    val_x, val_y = val_x[:64], val_y[:64]
    x, y = x[:256], y[:256]

    number = tf.Variable(0, dtype=tf.int64)
    count = keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: number.assign(epoch))
    examples = tf.data.Dataset.from_tensor_slices((x, y))
    train = tf.data.Dataset.range(1).flat_map(lambda _: examples.shuffle(len(x), seed=number))
    train = train.batch(args.batch, drop_remainder=True)
    train = train.apply(tf.data.experimental.assert_cardinality(len(x) // args.batch))
    val = tf.data.Dataset.from_tensor_slices((val_x, val_y)).batch(args.batch)

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = make_model(args.units)
        model.compile(keras.optimizers.SGD(0.4, momentum=0.9), loss=keras.losses.LogCosh(), metrics=["mae"])

    callbacks = [
        count,
        LowerRate(monitor="val_loss", factor=0.4, patience=1, min_delta=1e-3, cooldown=0),
        KeepBest("run/best.keras", monitor="val_loss", save_best_only=True),
        Report(),
        keras.callbacks.BackupAndRestore("run/backup", delete_checkpoint=False),
    ]
    model.fit(train, validation_data=val, epochs=args.epochs, callbacks=callbacks, verbose=0)

    last = model.evaluate(val, verbose=0)
    with strategy.scope():
        chosen = keras.models.load_model("run/best.keras")
    score = chosen.evaluate(val, verbose=0)
    rate = float(keras.ops.convert_to_numpy(model.optimizer.learning_rate))
    print(f"last {last[0]:.6f} {last[1]:.6f} best {score[0]:.6f} {score[1]:.6f} rate {rate:.6f}")


if __name__ == "__main__":
    main()
