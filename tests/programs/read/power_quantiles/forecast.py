"""Bands for the feed-in of a wind farm: quantiles of the next hour's power, learned with the pinball loss.

    python forecast.py settings.json
"""
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf


class Farm:
    """Hourly power in shares of the installed capacity, and the wind that was forecast."""

    def __init__(self, hours, look_back, seed=5):
        rng = np.random.default_rng(seed)
        wind = np.zeros(hours + look_back)
        for hour in range(1, len(wind)):
            wind[hour] = 0.92 * wind[hour - 1] + 0.4 * rng.normal()
        forecast = wind + 0.3 * rng.normal(size=len(wind))
        power = 1 / (1 + np.exp(-1.5 * wind)) + 0.08 * rng.normal(size=len(wind)) * np.exp(0.4 * wind)
        at = np.arange(look_back, len(wind))
        past = power[at[:, None] - np.arange(1, look_back + 1)]
        self.inputs = np.concatenate([past, forecast[at, None]], axis=1).astype("float32")
        self.power = power[at, None].astype("float32")

    def rows(self, first, last, batch):
        for start in range(first, last, batch):
            yield self.inputs[start : start + batch].copy(), self.power[start : start + batch].copy()

    def dataset(self, first, last, batch):
        kinds = (tf.TensorSpec((None, self.inputs.shape[1]), tf.float32), tf.TensorSpec((None, 1), tf.float32))
        return tf.data.Dataset.from_generator(lambda: self.rows(first, last, batch), output_signature=kinds)


class Pinball:
    """The pinball loss of an hour, averaged over the levels."""

    def __init__(self, levels):
        self.levels = tf.constant(levels, tf.float32)

    def __call__(self, power, quantiles):
        over = power - quantiles
        each = tf.maximum(self.levels * over, (self.levels - 1) * over)
        return tf.reduce_mean(each, axis=-1)


class WinklerLikeScore(keras.metrics.Metric):
    """Mean width of the band for each hour that it covers: narrow bands that hold are good."""

    def __init__(self, name="band_score", **options):
        super().__init__(name=name, **options)
        self.width = self.add_weight(name="width", initializer="zeros")
        self.inside = self.add_weight(name="inside", initializer="zeros")

    def update_state(self, power, quantiles, sample_weight=None):
        low, high = quantiles[:, :1], quantiles[:, -1:]
        self.width.assign_add(tf.reduce_sum(tf.maximum(high - low, 0.0)))
        self.inside.assign_add(tf.reduce_sum(tf.cast((low <= power) & (power <= high), tf.float32)))

    def result(self):
        return self.width / (self.inside + 1.0)


def network(settings, features):
    model = keras.Sequential([keras.Input((features,))])
    for units in settings["units"]:
        model.add(keras.layers.Dense(units, activation="elu"))
    model.add(keras.layers.Dense(len(settings["levels"]), name="quantiles"))
    return model


def main(path):
    settings = json.loads(Path(path).read_text())
    keras.utils.set_random_seed(31)
    farm = Farm(settings["hours"], settings["look_back"])
    hours, batch = settings["hours"], settings["batch"]
    split = hours * 4 // 5
    steps = split // batch
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = network(settings, farm.inputs.shape[1])
        optimizer = keras.optimizers.SGD(settings["rate"], momentum=settings["momentum"])
        model.compile(optimizer, loss=Pinball(settings["levels"]), metrics=[WinklerLikeScore()])
    known = farm.dataset(0, split, batch).repeat()
    later = farm.dataset(split, hours, batch)
    history = model.fit(known, epochs=settings["epochs"], steps_per_epoch=steps, validation_data=later, verbose=0).history
    for epoch, (loss, held) in enumerate(zip(history["loss"], history["val_loss"]), 1):
        print(f"epoch {epoch}: pinball {loss:.5f}, later hours {held:.5f}")
    told = model.evaluate(later, verbose=0, return_dict=True)
    crossed = np.mean(np.diff(model.predict(farm.inputs[split:], batch_size=batch, verbose=0), axis=1) < 0)
    size = sum(float(np.abs(weight.numpy()).sum()) for weight in model.trainable_variables)
    print(f"trained {history['loss'][-1]:.5f} later {told['loss']:.5f} score {told['band_score']:.4f}"
          f" crossed {crossed:.3f} weights {size:.4f}")


if __name__ == "__main__":
    main(sys.argv[1])
