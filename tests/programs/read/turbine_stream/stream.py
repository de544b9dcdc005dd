"""Bearing temperature of turbines from a stream of readings; may be stopped at any time and started again."""
import argparse
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

SENSORS, WINDOW = 3, 12


class Readings:
    """Cuts windows out of the logs of several turbines, in the order of time."""

    def __init__(self, turbines, batches, batch_size, seed):
        rng = np.random.default_rng(seed)
        steps = batches * batch_size // turbines
        t = np.arange(steps + WINDOW)
        speed = 1.5 + np.sin(t / 9 + rng.uniform(0, 6, (turbines, 1))) + rng.normal(0, 0.1, (turbines, len(t)))
        load = np.cumsum(rng.normal(0, 0.15, (turbines, len(t))), axis=1)
        air = 0.5 * np.sin(t / 40 + rng.uniform(0, 6, (turbines, 1)))
        heat = np.zeros_like(speed)
        for i in range(1, len(t)):
            heat[:, i] = 0.8 * heat[:, i - 1] + 0.15 * speed[:, i] ** 2 + 0.1 * np.abs(load[:, i]) + 0.1 * air[:, i]
        self.logs = np.float32(np.stack([speed, load, air], axis=-1))
        self.heat = np.float32(heat)
        self.batches, self.batch_size = batches, batch_size

    def __call__(self):
        turbines = len(self.logs)
        for first in range(0, self.batches * self.batch_size, self.batch_size):
            places = [divmod(n, turbines) for n in range(first, first + self.batch_size)]
            windows = np.stack([self.logs[turbine, start : start + WINDOW] for start, turbine in places])
            heat = np.stack([self.heat[turbine, start + WINDOW - 1] for start, turbine in places])
            yield windows, heat[:, None]

    def dataset(self):
        signature = (tf.TensorSpec((None, WINDOW, SENSORS)), tf.TensorSpec((None, 1)))
        return tf.data.Dataset.from_generator(self, output_signature=signature)


class Warmup(keras.callbacks.Callback):
    """Raises the learning rate in the first steps, and lets it fall with the root of the steps from then on."""

    def __init__(self, peak, steps):
        super().__init__()
        self.peak, self.steps = peak, steps

    def on_train_batch_begin(self, batch, logs=None):
        done = int(self.model.optimizer.iterations.numpy()) + 1
        rate = self.peak * min(done / self.steps, (self.steps / done) ** 0.5)
        self.model.optimizer.learning_rate = rate


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--peak", type=float, default=0.02)
    parser.add_argument("--warmup", type=int, default=30)
    parser.add_argument("--work", type=Path, default=Path("work"))
    args = parser.parse_args()
    keras.utils.set_random_seed(12)
    args.work.mkdir(exist_ok=True)
    train = Readings(8, args.batches, args.batch, seed=1)
    later = Readings(8, 4, args.batch, seed=2)

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = keras.Sequential([
            keras.Input((WINDOW, SENSORS)),
            keras.layers.Conv1D(12, 4, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.Dense(1),
        ])
        model.compile(keras.optimizers.Adam(args.peak), loss="huber", metrics=["mae"])

    report = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: print(
        f"epoch {epoch}: loss {logs['loss']:.5f} val_mae {logs['val_mae']:.5f}", flush=True))
    model.fit(
        train.dataset().repeat(),
        steps_per_epoch=args.batches,
        validation_data=later.dataset(),
        epochs=args.epochs,
        verbose=0,
        callbacks=[Warmup(args.peak, args.warmup), report,
                   keras.callbacks.BackupAndRestore(str(args.work / "backup"))],
    )
    model.save(args.work / "turbine.keras")
    loss, error = model.evaluate(later.dataset(), verbose=0)
    size = sum(float(np.abs(weight).sum()) for weight in model.get_weights())
    rate = float(model.optimizer.learning_rate.numpy())
    print(f"later: loss {loss:.5f} mean error {error:.5f} weights {size:.4f} rate {rate:.5f}")


if __name__ == "__main__":
    main()
