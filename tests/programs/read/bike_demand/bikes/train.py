"""Poisson regression of bicycle rentals.   python -m bikes.train bikes.json

A run that was stopped goes on after the last epoch that it has saved.
"""
import sys
from pathlib import Path

import keras
import tensorflow as tf

from .config import Config
from .data import Rentals


class WarmupThenRoot(keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, peak, warmup):
        self.peak, self.warmup = peak, warmup

    def __call__(self, step):
        step = tf.cast(step, tf.float32) + 1.0
        return self.peak * tf.minimum(step / self.warmup, tf.sqrt(self.warmup / step))

    def get_config(self):
        return {"peak": self.peak, "warmup": self.warmup}


class DemandModel(keras.Model):
    def __init__(self, stations, config):
        super().__init__()
        self.place = keras.layers.Embedding(stations, config.station_size)
        self.hidden = keras.layers.Dense(config.units, activation="gelu")
        self.log_rate = keras.layers.Dense(1)

    def call(self, inputs):
        station, weather = inputs
        x = tf.concat([self.place(station), weather], axis=-1)
        return tf.squeeze(self.log_rate(self.hidden(x)), -1)


class Trainer:
    def __init__(self, config):
        self.config = config.training
        self.rentals = Rentals(config.data)
        self.strategy = tf.distribute.MirroredStrategy()
        with self.strategy.scope():
            self.model = DemandModel(config.data.stations, config.model)
            self.model((self.rentals.station[:1], self.rentals.weather[:1]))
            self.optimizer = keras.optimizers.AdamW(
                WarmupThenRoot(self.config.peak_rate, self.config.warmup), weight_decay=1e-3)
            self.optimizer.build(self.model.trainable_variables)
            self.smooth_loss = tf.Variable(1.0, trainable=False, aggregation=tf.VariableAggregation.MEAN)
        self.epoch = tf.Variable(0, trainable=False)
        self.checkpoint = tf.train.Checkpoint(
            model=self.model, optimizer=self.optimizer, smooth_loss=self.smooth_loss, epoch=self.epoch)
        self.folder = Path(self.config.folder)

    def resume(self):
        latest = tf.train.latest_checkpoint(self.folder)
        self.checkpoint.restore(latest)
        if int(self.epoch) > 0:
            print(f"goes on after {int(self.epoch)} epochs")

    def losses(self, station, weather, count, training):
        log_rate = self.model((station, weather), training=training)
        return tf.nn.log_poisson_loss(count, log_rate)

    def replica_step(self, station, weather, count):
        with tf.GradientTape() as tape:
            losses = self.losses(station, weather, count, training=True)
            loss = tf.nn.compute_average_loss(losses, global_batch_size=self.config.batch)
        weights = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        mine = tf.reduce_mean(losses)
        self.smooth_loss.assign_add(self.config.smoothing * (mine - self.smooth_loss))

    @tf.function
    def train_epoch(self, batches):
        for batch in batches:
            self.strategy.run(self.replica_step, args=batch)

    def run(self):
        self.resume()
        while int(self.epoch) < self.config.epochs:
            data = self.rentals.epoch(int(self.epoch), self.config.batch)
            self.train_epoch(self.strategy.experimental_distribute_dataset(data))
            self.epoch.assign_add(1)
            self.checkpoint.save(str(self.folder / "ckpt"))
            print(f"epoch {int(self.epoch)}: smoothed loss {float(self.smooth_loss.numpy()):.5f}", flush=True)

    def test(self):
        total = rows = 0.0
        for station, weather, count in self.rentals.held_out(64):
            losses = self.losses(station, weather, count, training=False)
            total, rows = total + float(tf.reduce_sum(losses)), rows + len(losses)
        return total / rows


def main():
    keras.utils.set_random_seed(3)
    trainer = Trainer(Config.read(sys.argv[1]))
    trainer.run()
    size = sum(float(tf.reduce_sum(tf.abs(weight.numpy()))) for weight in trainer.model.trainable_variables)
    print(f"smoothed {float(trainer.smooth_loss.numpy()):.5f} held out {trainer.test():.5f} weights {size:.4f}"
          f" after {int(trainer.optimizer.iterations.numpy())}.0 steps in {int(trainer.checkpoint.save_counter)}.0 checkpoints")


if __name__ == "__main__":
    main()
