import math

import keras
import tensorflow as tf

from pumps.network import Autoencoder
from pumps.signals import CHANNELS, TIMES, global_batches


class Trainer:
    def __init__(self, strategy, batch=32, rate=0.05, folder="checkpoints", seed=13):
        self.strategy, self.batch, self.seed = strategy, batch, seed
        with strategy.scope():
            self.model = Autoencoder()
            self.model(tf.zeros((1, TIMES, CHANNELS)))
            self.optimizer = keras.optimizers.SGD(rate, momentum=0.9)
            self.optimizer.build(self.model.trainable_variables)
            # the usual error of a good pump, by which errors are judged later
            self.usual = tf.Variable(1.0, trainable=False)
            self.epoch = tf.Variable(0, dtype=tf.int64, trainable=False)
            self.best = tf.Variable(math.inf, trainable=False)
        self.state = tf.train.Checkpoint(
            model=self.model, optimizer=self.optimizer, usual=self.usual, epoch=self.epoch, best=self.best)
        self.manager = tf.train.CheckpointManager(self.state, folder, max_to_keep=2)
        self.state.restore(self.manager.latest_checkpoint)

    def errors(self, rows):
        return tf.reduce_mean(tf.square(rows - self.model(rows)), axis=[1, 2])

    @tf.function
    def train_step(self, rows):
        def of_replica(rows):
            with tf.GradientTape() as tape:
                errors = self.errors(rows)
                loss = tf.nn.compute_average_loss(errors, global_batch_size=self.batch)
            gradients = tape.gradient(loss, self.model.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
            return tf.reduce_sum(errors), tf.shape(errors)[0]

        return self.added_up(self.strategy.run(of_replica, args=(rows,)))

    @tf.function
    def test_step(self, rows):
        def of_replica(rows):
            errors = self.errors(rows)
            return tf.reduce_sum(errors), tf.shape(errors)[0]

        return self.added_up(self.strategy.run(of_replica, args=(rows,)))

    def added_up(self, results):
        return [self.strategy.reduce(tf.distribute.ReduceOp.SUM, each, axis=None) for each in results]

    def mean_of(self, step, data):
        total = count = 0.0
        for rows in self.strategy.experimental_distribute_dataset(data):
            part, number = step(rows)
            total, count = total + float(part), count + int(number)
        return total / count

    def test(self, rows):
        return self.mean_of(self.test_step, tf.data.Dataset.from_tensor_slices(rows).batch(self.batch))

    def fit(self, rows, held_out, epochs):
        while int(self.epoch.numpy()) < epochs:
            epoch = int(self.epoch.numpy())
            loss = self.mean_of(self.train_step, global_batches(rows, self.batch, self.seed, epoch))
            self.usual.assign(0.7 * self.usual + 0.3 * loss)
            score = self.test(held_out)
            self.best.assign(min(float(self.best.numpy()), score))
            self.epoch.assign_add(1)
            self.manager.save()
            print(f"epoch {epoch + 1}: loss {loss:.5f} held out {score:.5f} usual {float(self.usual.numpy()):.5f}")
