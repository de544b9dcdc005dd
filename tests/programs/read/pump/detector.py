import keras
import numpy as np
import tensorflow as tf

SENSORS, TIMES = 4, 6
BOTTLENECK = 5


def stream(count, seed, broken=0.15):
    """Windows of a pump's sensors, and which of them are from a broken pump."""
    rng = np.random.default_rng(seed)
    phase = rng.uniform(0, 2 * np.pi, (count, 1, 1))
    t = np.arange(TIMES)[None, :, None] * 0.7
    gain = np.linspace(0.6, 1.4, SENSORS)[None, None]
    good = gain * np.sin(phase + t + 0.3 * np.arange(SENSORS)) + 0.05 * rng.normal(size=(count, TIMES, SENSORS))
    bad = rng.random(count) < broken * np.linspace(0.2, 2.0, count)  # it gets worse
    good[bad] += rng.normal(0, 0.5, (bad.sum(), TIMES, SENSORS))
    return good.reshape(count, -1).astype("float32"), bad.astype("float32")


def autoencoder():
    dense = keras.layers.Dense
    return keras.Sequential([
        keras.Input((TIMES * SENSORS,)),
        dense(16, "tanh", name="in"),
        dense(BOTTLENECK, name="code"),
        dense(16, "tanh", name="back"),
        dense(TIMES * SENSORS, name="out"),
    ])


class Scores:
    """What is counted while a stream is scored."""

    def __init__(self):
        self.error = keras.metrics.Mean()
        self.auc = keras.metrics.AUC(num_thresholds=50)
        # Batches, for the alarms in each; every replica has a part of each.
        self.batches = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
        self.alarms = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.SUM,
                                  synchronization=tf.VariableSynchronization.ON_READ)

    def add(self, errors, bad, limit):
        self.error.update_state(errors)
        self.auc.update_state(bad, 1 - tf.exp(-errors))
        self.batches.assign_add(1.0)
        self.alarms.assign_add(tf.reduce_sum(tf.cast(errors > limit, tf.float32)))
