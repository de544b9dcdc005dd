"""Which step size suits the forecast of demand? Every trial starts from the same untrained network.

    python sweep.py 0.02 0.05 0.1
"""
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
import keras

STRATEGY = tf.distribute.MirroredStrategy()
BATCH, WINDOW, EPOCHS = 18, 12, 2
START = str(Path(__file__).resolve().parent / "start" / "untrained")


def windows():
    """Hourly demand with a daily rhythm; the target is the hour after the window."""
    rng = np.random.default_rng(6)
    hour = np.arange(90 + WINDOW)
    demand = np.sin(hour * 2 * np.pi / 24) + 0.4 * np.sin(hour * 2 * np.pi / 12 + 1) + rng.normal(0, 0.1, hour.shape)
    x = np.stack([demand[i:i + WINDOW] for i in range(90)])[..., None]
    return x.astype("float32"), demand[WINDOW:].astype("float32")


def forecaster():
    return keras.Sequential([
        keras.Input((WINDOW, 1)),
        keras.layers.Conv1D(8, 3, activation="relu"),
        keras.layers.GRU(8),
        keras.layers.Dense(1),
    ])


class Trials:
    def __init__(self):
        keras.utils.set_random_seed(2)
        self.x, self.y = windows()
        with STRATEGY.scope():
            self.model = forecaster()
            self.optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
            self.optimizer.build(self.model.trainable_variables)
        self.start = tf.train.Checkpoint(model=self.model, optimizer=self.optimizer)
        self.start.write(START)

    def replica(self, x, y):
        with tf.GradientTape() as tape:
            error = self.model(x, training=True)[:, 0] - y
            loss = tf.reduce_sum(keras.losses.huber(y[:, None], y[:, None] + error[:, None])) / BATCH
        weights = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    @tf.function
    def step(self, x, y):
        return STRATEGY.reduce("SUM", STRATEGY.run(self.replica, args=(x, y)), axis=None)

    def epoch(self, number):
        order = np.random.default_rng(number).permutation(len(self.y))
        data = tf.data.Dataset.from_tensor_slices((self.x[order], self.y[order])).batch(BATCH)
        return [float(self.step(*batch)) for batch in STRATEGY.experimental_distribute_dataset(data)]

    def trial(self, rate):
        """Mean loss of the last epoch with this step size."""
        self.start.read(START).assert_existing_objects_matched()
        self.optimizer.learning_rate.assign(rate)
        for number in range(EPOCHS):
            losses = self.epoch(number)
        return float(np.mean(losses))


def main(rates):
    trials = Trials()
    results = {}
    for rate in rates:
        results[rate] = trials.trial(rate)
        print(f"step size {rate}: {results[rate]:.5f}")
    best = min(results, key=results.get)
    change = sum(float(np.abs(w).sum()) for w in trials.model.get_weights())
    print(f"best {best:.5f} with {results[best]:.6f}, all {sum(results.values()):.6f}, weights {change:.5f}")


if __name__ == "__main__":
    main([float(a) for a in sys.argv[1:]] or [0.02, 0.05, 0.1])
