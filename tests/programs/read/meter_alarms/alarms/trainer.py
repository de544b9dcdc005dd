import keras
import numpy as np
import tensorflow as tf

from . import readings
from .network import LeakNet


class Trainer:
    """Trains for some epochs, and keeps all that a restart needs in one checkpoint."""

    def __init__(self, folder, batch=32, rate=0.02, weight_of_leaks=2.0, patience=1):
        self.batch, self.weight_of_leaks, self.patience = batch, weight_of_leaks, patience
        self.strategy = tf.distribute.MirroredStrategy()
        with self.strategy.scope():
            self.model = LeakNet(seed=5)
            self.optimizer = keras.optimizers.SGD(rate, momentum=0.9)
            self.prepare()
            self.epoch = tf.Variable(0, dtype=tf.int64, trainable=False)
            self.cutoff = tf.Variable(0.5, trainable=False)
            self.best = tf.Variable(np.inf, trainable=False)
            self.waited = tf.Variable(0, trainable=False)
        self.checkpoint = tf.train.Checkpoint(
            model=self.model,
            optimizer=self.optimizer,
            epoch=self.epoch,
            cutoff=self.cutoff,
            best=self.best,
            waited=self.waited,
        )
        self.manager = tf.train.CheckpointManager(self.checkpoint, folder, max_to_keep=2)
        if self.manager.restore_or_initialize():
            print(f"goes on after epoch {int(self.epoch.numpy())}")

    def prepare(self):
        self.model(tf.zeros((1, readings.HOURS)))
        self.optimizer.build(self.model.trainable_variables)

    def losses(self, leaks, logits):
        return tf.nn.weighted_cross_entropy_with_logits(leaks, logits, self.weight_of_leaks)

    @tf.function
    def train_step(self, flow, leaks):
        def replica(flow, leaks):
            with tf.GradientTape() as tape:
                losses = self.losses(leaks, self.model(flow, training=True))
                loss = tf.nn.compute_average_loss(losses, global_batch_size=self.batch)
            gradients = tape.gradient(loss, self.model.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
            return loss

        return self.strategy.reduce("SUM", self.strategy.run(replica, args=(flow, leaks)), axis=None)

    @tf.function
    def test_step(self, flow, leaks):
        def replica(flow, leaks):
            logits = self.model(flow, training=False)
            return self.losses(leaks, logits), tf.sigmoid(logits)

        losses, chances = self.strategy.run(replica, args=(flow, leaks))
        return self.strategy.gather(losses, axis=0), self.strategy.gather(chances, axis=0)

    def train(self, flow, leaks):
        data = readings.training(flow, leaks, self.batch, int(self.epoch.numpy()))
        losses = [self.train_step(*pair) for pair in self.strategy.experimental_distribute_dataset(data)]
        return float(tf.reduce_mean(losses))

    def test(self, flow, leaks):
        """The mean loss of all days, and the probability of each."""
        data = self.strategy.experimental_distribute_dataset(readings.held_out(flow, leaks, self.batch))
        losses, chances = zip(*[self.test_step(*pair) for pair in data])
        return float(tf.reduce_mean(tf.concat(losses, 0))), tf.concat(chances, 0).numpy()

    def move_cutoff(self, chances, leaks):
        """Slowly, so that the people who get the alarms do not see it jump."""
        raised = np.mean(chances > self.cutoff.numpy())
        self.cutoff.assign_add(0.3 * (raised - leaks.mean()))

    def lower_rate(self, loss):
        if loss < self.best.numpy():
            self.best.assign(loss)
            self.waited.assign(0)
        elif self.waited.assign_add(1).numpy() > self.patience:
            self.optimizer.learning_rate.assign(self.optimizer.learning_rate * 0.5)
            self.waited.assign(0)

    def run(self, train, test, epochs):
        while int(self.epoch.numpy()) < epochs:
            loss = self.train(*train)
            test_loss, chances = self.test(*test)
            self.move_cutoff(chances, test[1])
            self.lower_rate(test_loss)
            self.epoch.assign_add(1)
            self.manager.save(checkpoint_number=self.epoch)
            print(f"epoch {int(self.epoch.numpy())}: loss {loss:.4f}, held out {test_loss:.4f}", flush=True)
        return self.test(*test)
