"""Counts of rented bicycles for each station and hour."""
import numpy as np
import tensorflow as tf


class Rentals:
    def __init__(self, config):
        rng = np.random.default_rng(config.seed)
        station, hour = (grid.ravel() for grid in np.mgrid[: config.stations, : config.hours])
        rain = (rng.random(config.hours) < 0.2)[hour].astype("float32")
        warmth = np.float32(np.sin(2 * np.pi * hour / config.hours))
        popularity = rng.normal(0.6, 0.5, config.stations)[station]
        day = 2 * np.pi * hour / 24
        rate = np.exp(popularity + 0.7 * np.sin(day - 1.5) + 0.5 * warmth - 0.8 * rain)
        self.station = station.astype("int32")
        self.weather = np.float32(np.stack([np.sin(day), np.cos(day), np.sin(2 * day), np.cos(2 * day), rain, warmth], 1))
        self.count = rng.poisson(rate).astype("float32")
        test = rng.random(len(station)) < 1 / 6
        self.test, self.train = np.flatnonzero(test), np.flatnonzero(~test)

    def epoch(self, number, batch):
        """The rows of training in the order of this epoch."""
        rows = np.random.default_rng([17, number]).permutation(self.train)
        return self._batches(rows[: len(rows) // batch * batch], batch)

    def held_out(self, batch):
        return self._batches(self.test, batch)

    def _batches(self, rows, batch):
        return tf.data.Dataset.from_tensor_slices((self.station[rows], self.weather[rows], self.count[rows])).batch(batch)
