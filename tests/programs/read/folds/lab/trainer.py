import tensorflow as tf


def network(config):
    return tf.keras.Sequential(
        [
            tf.keras.Input((config.columns,)),
            tf.keras.layers.Dense(16, activation="tanh"),
            tf.keras.layers.Dense(8, activation="tanh"),
            tf.keras.layers.Dense(1),
        ]
    )


class Trainer:
    """Trains one model and measures it, on the devices of a strategy."""

    def __init__(self, strategy, config):
        self.strategy, self.config = strategy, config
        with strategy.scope():
            self.model = network(config)
            self.optimizer = tf.keras.optimizers.SGD(config.rate, momentum=config.momentum)
            self.optimizer.build(self.model.trainable_variables)
            self.area = tf.keras.metrics.AUC(from_logits=True)
        self.train_batch = tf.function(self._train_batch)
        self.test_batch = tf.function(self._test_batch)

    def losses(self, x, y, training):
        logits = self.model(x, training=training)
        return tf.nn.sigmoid_cross_entropy_with_logits(y, logits)[:, 0], logits

    def step(self, x, y):
        with tf.GradientTape() as tape:
            losses, _ = self.losses(x, y, training=True)
            loss = tf.reduce_sum(losses) / self.config.batch
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return loss

    def test_step(self, x, y):
        losses, logits = self.losses(x, y, training=False)
        self.area.update_state(y, logits)
        return tf.reduce_sum(losses)

    def _train_batch(self, batch):
        losses = self.strategy.run(self.step, args=batch)
        return self.strategy.reduce("SUM", losses, axis=None)

    def _test_batch(self, batch):
        losses = self.strategy.run(self.test_step, args=batch)
        return self.strategy.reduce("SUM", losses, axis=None)

    def fit(self, datasets):
        for data in datasets:
            for batch in self.strategy.experimental_distribute_dataset(data):
                self.train_batch(batch)

    def evaluate(self, data, count):
        total = 0.0
        for batch in self.strategy.experimental_distribute_dataset(data):
            total += float(self.test_batch(batch))
        return total / count, float(self.area.result())
