"""Load of six feeders, quarter hours ahead: a stateful GRU that reads the meters as one long stream.

The gradient goes back one chunk, the state goes on to the next one. A job that is stopped goes on where it was saved,
in the middle of the stream, too.
"""
import argparse
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

QUANTILES = (0.1, 0.5, 0.9)


def meters(feeders, steps, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(steps + 1)
    phase = rng.uniform(0, 2 * np.pi, (feeders, 1))
    load = np.sin(2 * np.pi * t / 24 + phase) + 0.4 * np.sin(2 * np.pi * t / 168 + 2 * phase)
    drift = np.cumsum(rng.normal(0, 0.05, (feeders, steps + 1)), axis=1)
    return np.float32(load + drift + rng.normal(0, 0.1, (feeders, steps + 1)))


class FeederModel(keras.Model):
    def __init__(self, units):
        super().__init__()
        self.memory = keras.layers.GRU(units, return_sequences=True, stateful=True)
        self.heads = tuple(keras.layers.Dense(1, name=f"q{int(100 * q)}") for q in QUANTILES)

    def call(self, x):
        states = self.memory(x)
        return tf.concat([head(states) for head in self.heads], axis=-1)


class Trainer:
    def __init__(self, args):
        self.args = args
        self.strategy = tf.distribute.get_strategy()
        self.load = meters(args.feeders, args.chunks * args.chunk, seed=3)
        with self.strategy.scope():
            self.model = FeederModel(args.units)
            self.model(tf.zeros((args.feeders, args.chunk, 1)))
            self.optimizer = keras.optimizers.RMSprop(args.rate)
            self.optimizer.build(self.model.trainable_variables)
            self.place = tf.Variable(0, dtype=tf.int64)
            self.epoch = tf.Variable(0, dtype=tf.int64)
            self.total = tf.Variable(0.0)  # of all chunks since the first start
        self.model.memory.reset_states()
        self.checkpoint = tf.train.Checkpoint(
            model=self.model, optimizer=self.optimizer, place=self.place, epoch=self.epoch, total=self.total)
        self.manager = tf.train.CheckpointManager(self.checkpoint, args.folder, max_to_keep=2)

    def chunk(self, place):
        start = place * self.args.chunk
        window = self.load[:, start : start + self.args.chunk + 1, None]
        return tf.constant(window[:, :-1]), tf.constant(window[:, 1:])

    @tf.function
    def learn(self, x, y):
        with tf.GradientTape() as tape:
            error = y - self.model(x, training=True)
            q = tf.constant(QUANTILES)
            loss = tf.reduce_mean(tf.maximum(q * error, (q - 1) * error))
        weights = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    def run(self):
        if self.manager.latest_checkpoint:
            self.checkpoint.restore(self.manager.latest_checkpoint).assert_existing_objects_matched()
            print(f"goes on at epoch {int(self.epoch)}, chunk {int(self.place)}")
        while int(self.epoch) < self.args.epochs:
            while int(self.place) < self.args.chunks:
                loss = self.learn(*self.chunk(int(self.place)))
                self.total.assign_add(loss)
                self.place.assign_add(1)
                if int(self.place) % self.args.save_every == 0 and int(self.place) < self.args.chunks:
                    self.manager.save()
                    print(f"  chunk {int(self.place)} saved, last pinball {float(loss):.5f}")
            print(f"epoch {int(self.epoch)}: pinball {self.mean_so_far():.5f} on average since the start")
            self.epoch.assign_add(1)
            self.place.assign(0)
            self.model.memory.reset_states()
            self.manager.save()

    def mean_so_far(self):
        return float(self.total) / (int(self.epoch) * self.args.chunks + int(self.place))

    def backtest(self):
        self.model.memory.reset_states()
        inside, pinball = 0.0, 0.0
        for place in range(self.args.chunks):
            x, y = self.chunk(place)
            forecast = self.model(x, training=False).numpy()
            error = y.numpy() - forecast
            pinball += np.maximum(np.array(QUANTILES) * error, (np.array(QUANTILES) - 1) * error).mean()
            inside += np.mean((y.numpy()[..., 0] > forecast[..., 0]) & (y.numpy()[..., 0] < forecast[..., 2]))
        return pinball / self.args.chunks, inside / self.args.chunks


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--feeders", type=int, default=6)
    parser.add_argument("--chunks", type=int, default=15)
    parser.add_argument("--chunk", type=int, default=16)
    parser.add_argument("--units", type=int, default=12)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--save-every", type=int, default=4)
    parser.add_argument("--folder", type=Path, default=Path("feeder_state"))
    args = parser.parse_args()
    keras.utils.set_random_seed(8)
    trainer = Trainer(args)
    trainer.run()
    pinball, inside = trainer.backtest()
    size = sum(float(tf.reduce_sum(tf.abs(w))) for w in trainer.model.trainable_variables)
    print(f"training {trainer.mean_so_far():.5f}  backtest pinball {pinball:.5f}  inside the band {inside:.3f}  weights {size:.4f}")


if __name__ == "__main__":
    main()
