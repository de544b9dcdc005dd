"""Forecasts the water level of a river a day ahead, from the levels and the rain of two weeks.

    python levels.py --epochs 6
"""
import argparse
import math

import keras
import numpy as np
import tensorflow as tf


def record(days, seed):
    """Daily rain and level; the level falls slowly, and rises with the rain of the last days."""
    rng = np.random.default_rng(seed)
    rain = rng.gamma(0.4, 1.5, days)
    level = np.zeros(days)
    for day in range(3, days):
        level[day] = 0.85 * level[day - 1] + 0.2 * rain[day - 1] + 0.1 * rain[day - 3] + 0.02 * rng.normal()
    level += 0.2 * np.sin(np.arange(days) / 40)
    return np.stack([rain, level], 1).astype("float32")


def windows(rows, length):
    count = len(rows) - length
    x = np.stack([rows[start : start + length] for start in range(count)])
    return x, rows[length:, 1]


class Forecaster(tf.Module):
    """A recurrent cell with one gate, and a linear head."""

    def __init__(self, units, seed):
        super().__init__()
        rng = np.random.default_rng(seed)
        self.units = units
        self.gate = self.matrix(rng, units + 2, units)
        self.candidate = self.matrix(rng, units + 2, units)
        self.gate_bias = tf.Variable(tf.zeros(units))
        self.head = self.matrix(rng, units, 1)
        self.offset = tf.Variable(0.0)

    @staticmethod
    def matrix(rng, rows, columns):
        return tf.Variable(rng.normal(0, rows**-0.5, (rows, columns)).astype("float32"))

    def __call__(self, x):
        state = tf.zeros((tf.shape(x)[0], self.units))
        for day in range(x.shape[1]):
            inputs = tf.concat([x[:, day], state], 1)
            gate = tf.sigmoid(inputs @ self.gate + self.gate_bias)
            state = gate * state + (1 - gate) * tf.tanh(inputs @ self.candidate)
        return (state @ self.head)[:, 0] + self.offset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=4)
    args = parser.parse_args()

    rows = record(600, args.seed)
    x, y = windows(rows[:462], 14)
    dev_x, dev_y = windows(rows[450:], 14)

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = Forecaster(12, args.seed)
        optimizer = keras.optimizers.SGD(args.rate, momentum=0.9)
        optimizer.build(model.trainable_variables)
        # what the forecasts were too low by, of late; added when forecasting
        residual = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.MEAN)
        epoch = tf.Variable(0, dtype=tf.int64, trainable=False)
        best = tf.Variable(math.inf, trainable=False)

    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, residual=residual, epoch=epoch, best=best)
    manager = tf.train.CheckpointManager(checkpoint, "levels_ckpt", max_to_keep=2)
    if manager.restore_or_initialize():
        print("continuing after epoch", int(epoch.numpy()))

    orders = np.random.default_rng(args.seed)
    for _ in range(int(epoch.numpy())):
        orders.permutation(len(x))  # those of the epochs that are done

    def epoch_data():
        order = orders.permutation(len(x))
        data = tf.data.Dataset.from_tensor_slices((x[order], y[order])).batch(args.batch, drop_remainder=True)
        return strategy.experimental_distribute_dataset(data)

    def replica_step(x, y):
        with tf.GradientTape() as tape:
            error = y - model(x)
            loss = tf.nn.compute_average_loss(tf.square(error), global_batch_size=args.batch)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        residual.assign(0.95 * residual + 0.05 * tf.reduce_mean(error))
        return loss

    @tf.function
    def train_step(x, y):
        return strategy.reduce("SUM", strategy.run(replica_step, args=(x, y)), axis=None)

    def dev_error():
        error = dev_y - model(tf.constant(dev_x)).numpy() - residual.numpy()
        return float(np.sqrt(np.mean(error**2)))

    while int(epoch.numpy()) < args.epochs:
        losses = [float(train_step(*batch)) for batch in epoch_data()]
        epoch.assign_add(1)
        dev = dev_error()
        if dev > 0.9 * float(best.numpy()):  # hardly better
            optimizer.learning_rate.assign(0.5 * optimizer.learning_rate)
        best.assign(min(dev, float(best.numpy())))
        print(f"epoch {int(epoch.numpy())}: loss {np.mean(losses):.4f}, dev rmse {dev:.4f}")
        manager.save()

    print(f"rmse {dev_error():.4f} (best {float(best.numpy()):.4f}), residual {100 * float(residual.numpy()):.3f} cm, "
          f"rate {float(optimizer.learning_rate.numpy()):.5f}")


if __name__ == "__main__":
    main()
