"""The load of a power grid, with gaps where a meter was silent, and the model that forecasts it."""
import keras
import numpy as np
import tensorflow as tf

HISTORY, AHEAD = 10, 3


def windows(count, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(count + HISTORY + AHEAD)
    load = np.sin(t / 4) + 0.4 * np.sin(t / 1.7) + 0.1 * rng.normal(size=t.size)
    pieces = np.lib.stride_tricks.sliding_window_view(load, HISTORY + AHEAD)[:count]
    share = np.linspace(0.2, 1.0, 16)[np.arange(count) % 16]  # old meters are silent more often
    known = rng.random((count, AHEAD)) < share[:, None]
    past, future = pieces[:, :HISTORY, None], pieces[:, HISTORY:]
    return past.astype("float32"), np.where(known, future, 0).astype("float32"), known.astype("float32")


class Forecaster(keras.Model):
    def __init__(self, units, emphasis):
        super().__init__()
        self.reader = keras.layers.GRU(units, kernel_initializer=keras.initializers.GlorotUniform(1),
                                       recurrent_initializer=keras.initializers.Orthogonal(seed=2))
        self.out = keras.layers.Dense(AHEAD, kernel_initializer=keras.initializers.GlorotUniform(3))
        self.emphasis = emphasis
        self.error = keras.metrics.Mean(name="error")

    @property
    def metrics(self):
        return [self.error]

    def call(self, past):
        return self.out(self.reader(past))

    def weigh(self, known):
        return known * self.emphasis()

    def train_step(self, batch):
        past, future, known = batch
        replica = tf.distribute.get_replica_context()
        with tf.GradientTape() as tape:
            weight = self.weigh(known)
            squares = tf.reduce_sum(weight * tf.square(self(past) - future))
            mine = tf.reduce_sum(weight)
            loss = squares / replica.all_reduce("SUM", mine)
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        self.error.update_state(squares / mine, sample_weight=mine)
        return {"error": self.error.result()}
