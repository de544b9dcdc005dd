"""Losses and metrics by name."""
import functools

import keras
import tensorflow as tf


def pinball(future, forecast, level):
    error = future - forecast
    return tf.reduce_mean(tf.maximum(level * error, (level - 1.0) * error), axis=-1)


LOSSES = {
    "median": functools.partial(pinball, level=0.5),
    "stock": functools.partial(pinball, level=0.7),   # too little is worse than too much
}


class ShareOfDemand(keras.metrics.Metric):
    """Sum of the absolute errors over the sum of the demand (WAPE)."""

    def __init__(self, name="wape", **kwargs):
        super().__init__(name=name, **kwargs)
        self.errors = self.add_variable((), "zeros", name="errors")
        self.demand = self.add_variable((), "zeros", name="demand")

    def update_state(self, future, forecast, sample_weight=None):
        self.errors.assign_add(tf.reduce_sum(tf.abs(future - forecast)))
        self.demand.assign_add(tf.reduce_sum(future))

    def result(self):
        return self.errors / self.demand
