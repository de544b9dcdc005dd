"""Regression on weighted rows with large effective batches: gradients of several small batches make one update."""
from dataclasses import dataclass, field

import keras
import numpy as np
import tensorflow as tf


@dataclass
class Config:
    batch: int = 16
    accumulate: int = 4
    epochs: int = 4
    rows: int = 384
    rate: float = 0.3
    clip: float = 0.5
    warmup: int = 6
    hidden: list = field(default_factory=lambda: [24, 12])


def rows_of(count, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 6))
    y = x[:, 0] * x[:, 1] + np.sin(x[:, 2]) + 0.5 * x[:, 3] + rng.standard_t(3, count) * 0.2
    weight = rng.choice([0.2, 1.0, 3.0], count)
    return np.float32(x), np.float32(y), np.float32(weight)


class WarmedUpSGD(keras.optimizers.SGD):
    """SGD whose first updates are smaller."""

    def __init__(self, rate, warmup, **options):
        super().__init__(rate, **options)
        self.warmup = warmup

    def update_step(self, gradient, variable, learning_rate):
        done = tf.cast(tf.convert_to_tensor(self.iterations), tf.float32) + 1.0
        super().update_step(gradient, variable, learning_rate * tf.minimum(1.0, done / self.warmup))


class Trainer:
    def __init__(self, config, strategy):
        self.config, self.strategy = config, strategy
        with strategy.scope():
            layers = [keras.layers.Dense(units, "tanh") for units in config.hidden]
            self.model = keras.Sequential([keras.Input((6,)), *layers, keras.layers.Dense(1)])
            self.optimizer = WarmedUpSGD(config.rate, config.warmup, momentum=0.5)
            self.optimizer.build(self.model.trainable_variables)
            self.sums = [
                tf.Variable(
                    tf.zeros(weight.shape),
                    trainable=False,
                    synchronization=tf.VariableSynchronization.ON_READ,
                    aggregation=tf.VariableAggregation.SUM,
                )
                for weight in self.model.trainable_variables
            ]

    def collect(self, x, y, weight):
        """Adds the gradients of a batch to the sums of this replica."""
        with tf.GradientTape() as tape:
            losses = keras.losses.huber(y[:, None], self.model(x, training=True))
            loss = tf.nn.compute_average_loss(losses, weight, self.config.batch)
        for total, gradient in zip(self.sums, tape.gradient(loss, self.model.trainable_variables)):
            total.assign_add(gradient / self.config.accumulate)
        return loss

    def update(self):
        """Takes the step that the sums of all replicas ask for, and empties them."""
        context = tf.distribute.get_replica_context()
        gradients = context.all_reduce("SUM", [total.read_value() for total in self.sums])
        gradients, norm = tf.clip_by_global_norm(gradients, self.config.clip)
        # the optimizer adds up once more
        shares = [gradient / context.num_replicas_in_sync for gradient in gradients]
        self.optimizer.apply_gradients(zip(shares, self.model.trainable_variables))
        for total in self.sums:
            total.assign(tf.zeros_like(total))
        return norm

    @tf.function
    def collect_all(self, batch):
        return self.strategy.reduce("SUM", self.strategy.run(self.collect, args=batch), axis=None)

    @tf.function
    def update_all(self):
        return self.strategy.reduce("MEAN", self.strategy.run(self.update), axis=None)

    def data(self, seed):
        rows = tf.data.Dataset.from_tensor_slices(rows_of(self.config.rows, seed))
        return self.strategy.experimental_distribute_dataset(rows.batch(self.config.batch, drop_remainder=True))

    def fit(self):
        data = self.data(seed=1)
        for epoch in range(self.config.epochs):
            losses, norms = [], []
            for number, batch in enumerate(data, 1):
                losses.append(float(self.collect_all(batch)))
                if number % self.config.accumulate == 0:
                    norms.append(float(self.update_all()))
            print(f"epoch {epoch} loss {np.mean(losses):.4f} norm before clipping {np.mean(norms):.4f}")

    def test(self):
        x, y, weight = rows_of(256, seed=2)
        predicted = self.model.predict(x, batch_size=64, verbose=0)[:, 0]
        return float(np.average((predicted - y) ** 2, weights=weight))


def main():
    keras.utils.set_random_seed(4)
    trainer = Trainer(Config(), tf.distribute.MirroredStrategy())
    trainer.fit()
    size = sum(float(np.abs(weight).sum()) for weight in trainer.model.get_weights())
    print(f"weighted test error {trainer.test():.4f}, sum of the weights {size:.4f}")


if __name__ == "__main__":
    main()
