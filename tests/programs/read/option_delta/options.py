"""Prices of basket options and their deltas, with one network that learns both.

usage: options.py            goes on from options_ckpt, if it is there
"""
import keras
import numpy as np
import tensorflow as tf

ASSETS, PATHS, BATCH, EPOCHS = 3, 320, 32, 6


def simulate(paths, seed):
    """Payoff of a call on the basket on each path, and the derivative of the payoff to today's prices."""
    rng = np.random.default_rng(seed)
    spots = rng.uniform(0.6, 1.4, (paths, ASSETS))
    growth = np.exp(0.2 * rng.normal(size=(paths, ASSETS)) - 0.02)
    basket = (spots * growth).mean(axis=1)
    payoff = np.maximum(basket - 1.0, 0)
    deltas = growth / ASSETS * (basket > 1.0)[:, None]
    return [each.astype("float32") for each in (spots, payoff[:, None], deltas)]


class Pricer(keras.Model):
    def __init__(self, units):
        super().__init__()
        self.first = keras.layers.Dense(units, activation="softplus")
        self.second = keras.layers.Dense(units, activation="softplus")
        self.price = keras.layers.Dense(1)
        self.loss_mean = keras.metrics.Mean(name="both")
        self.delta_mean = keras.metrics.MeanSquaredError(name="delta_error")

    def call(self, spots):
        return self.price(self.second(self.first((spots - 1.0) / 0.25)))

    @property
    def metrics(self):
        return [self.loss_mean, self.delta_mean]

    def both(self, spots):
        with tf.GradientTape() as inner:
            inner.watch(spots)
            price = self(spots)
        return price, inner.gradient(price, spots)

    def losses(self, payoff, deltas, price, slope):
        return tf.square(price - payoff)[:, 0] + tf.reduce_mean(tf.square(slope - deltas), axis=1)

    def train_step(self, data):
        spots, (payoff, deltas) = data
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        with tf.GradientTape() as tape:
            price, slope = self.both(spots)
            each = self.losses(payoff, deltas, price, slope)
            loss = tf.reduce_mean(each) / replicas
        weights = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, weights), weights)
        self.loss_mean.update_state(each)
        self.delta_mean.update_state(deltas, slope)
        return {metric.name: metric.result() for metric in self.metrics}

    def test_step(self, data):
        spots, (payoff, deltas) = data
        price, slope = self.both(spots)
        self.loss_mean.update_state(self.losses(payoff, deltas, price, slope))
        self.delta_mean.update_state(deltas, slope)
        return {metric.name: metric.result() for metric in self.metrics}


def to_dataset(table, epoch=None):
    spots, payoff, deltas = table
    data = tf.data.Dataset.from_tensor_slices((spots, (payoff, deltas)))
    if epoch is not None:
        data = data.shuffle(PATHS, seed=100 + epoch)
    return data.batch(BATCH, drop_remainder=True)


keras.utils.set_random_seed(100)
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    pricer = Pricer(units=16)
    pricer(tf.ones((1, ASSETS)))
    pricer.compile(optimizer=keras.optimizers.SGD(0.03, momentum=0.8, nesterov=True))
    pricer.optimizer.build(pricer.trainable_variables)

done = tf.Variable(0)
lowest = tf.Variable(1e9)
checkpoint = tf.train.Checkpoint(pricer=pricer, done=done, lowest=lowest)
manager = tf.train.CheckpointManager(checkpoint, "options_ckpt", max_to_keep=1)
if manager.latest_checkpoint:
    checkpoint.restore(manager.latest_checkpoint)
    print(f"{int(done)} epochs are done")

train, test = simulate(PATHS, seed=1), to_dataset(simulate(160, seed=2))
for epoch in range(int(done), EPOCHS):
    logs = pricer.fit(to_dataset(train, epoch), verbose=0).history
    lowest.assign(min(float(lowest), logs["both"][0]))
    print(f"epoch {epoch}: price and delta {logs['both'][0]:.5f}, delta {logs['delta_error'][0]:.5f}")
    done.assign(epoch + 1)
    manager.save()

scores = pricer.evaluate(test, verbose=0, return_dict=True)
print(f"new paths: {scores['both']:.5f}, delta {scores['delta_error']:.5f}, lowest in training {float(lowest):.5f}, "
      f"price at the money {float(pricer(tf.ones((1, ASSETS)))[0, 0]):.4f}")
