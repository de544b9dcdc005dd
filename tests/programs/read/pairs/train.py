"""Implicit feedback. Users and items share a space; a user is nearer to an item that was liked than to another one.

    train.py --folder runs --epochs 4 --micro 2
"""
import argparse

import keras
import numpy as np
import tensorflow as tf


def arguments():
    reader = argparse.ArgumentParser()
    reader.add_argument("--folder", default="runs")
    reader.add_argument("--epochs", type=int, default=4)
    reader.add_argument("--batch", type=int, default=24)
    reader.add_argument("--micro", type=int, default=2, help="batches for one update")
    reader.add_argument("--warm", type=int, default=1, help="epochs without the facts about the items")
    reader.add_argument("--width", type=int, default=8)
    reader.add_argument("--rate", type=float, default=0.02)
    return reader.parse_args()


class Likes:
    USERS, ITEMS, ROWS = 30, 40, 240

    def __init__(self, width):
        rng = np.random.default_rng(3)
        taste = rng.normal(size=(self.USERS, 4))
        kind = rng.normal(size=(self.ITEMS, 4))
        self.facts = np.float32(kind @ rng.normal(size=(4, width)) * 0.5)
        user = rng.integers(0, self.USERS, self.ROWS)
        some, others = rng.integers(0, self.ITEMS, (2, self.ROWS))
        better = (taste[user] * (kind[some] - kind[others])).sum(-1) > 0
        self.columns = user, np.where(better, some, others), np.where(better, others, some)

    def epoch(self, number, batch):
        data = tf.data.Dataset.from_tensor_slices(self.columns)
        data = data.shuffle(self.ROWS, seed=100 + number)
        return data.batch(batch, drop_remainder=True)


class Space(keras.Model):
    def __init__(self, width, facts):
        super().__init__()
        near = lambda seed: keras.initializers.RandomNormal(0, 0.3, seed=seed)  # noqa: E731
        self.facts = tf.constant(facts)
        self.user = keras.layers.Embedding(Likes.USERS, width, near(1))
        self.item = keras.layers.Embedding(Likes.ITEMS, width, near(2))
        self.content = keras.layers.Dense(width, use_bias=False, kernel_initializer=near(3))
        self.turn = keras.layers.Dense(width, use_bias=False, kernel_initializer=near(4))

    def place(self, items, told):
        place = self.turn(self.item(items))
        return place + self.content(tf.gather(self.facts, items)) if told else place

    def call(self, triple, told=True):
        user, liked, other = triple
        return tf.reduce_sum(self.user(user) * (self.place(liked, told) - self.place(other, told)), -1)


class Trainer:
    def __init__(self, options):
        self.options = options
        self.likes = Likes(options.width)
        self.strategy = tf.distribute.MirroredStrategy()
        with self.strategy.scope():
            self.space = Space(options.width, self.likes.facts)
            self.space(tuple(tf.zeros((1,), tf.int64) for _ in range(3)))
            self.weights = self.space.trainable_variables
            self.optimizer = keras.optimizers.Adam(options.rate)
            self.optimizer.build(self.weights)
            self.sums = [self.sum_of(weight) for weight in self.weights]
            self.margin = tf.Variable(0.5, trainable=False)
            self.done = tf.Variable(0, dtype=tf.int64, trainable=False)
        state = dict(space=self.space, optimizer=self.optimizer, margin=self.margin, done=self.done)
        self.manager = tf.train.CheckpointManager(tf.train.Checkpoint(**state), options.folder, 2)

    @staticmethod
    def sum_of(weight):
        return tf.Variable(tf.zeros(weight.shape), trainable=False,
                           synchronization=tf.VariableSynchronization.ON_READ,
                           aggregation=tf.VariableAggregation.SUM)

    def losses(self, scores):
        return tf.nn.softplus(self.margin - scores)

    def gather(self, triple, told):
        with tf.GradientTape() as tape:
            losses = self.losses(self.space(triple, told=told))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=self.options.batch)
        gradients = tape.gradient(loss, self.weights)
        gradients = [tf.zeros(weight.shape) if gradient is None else tf.convert_to_tensor(gradient)
                     for gradient, weight in zip(gradients, self.weights)]
        for total, gradient in zip(self.sums, gradients):
            total.assign_add(gradient)
        return loss

    def update(self):
        shares = [total / self.options.micro for total in self.sums]
        self.optimizer.apply_gradients(zip(shares, self.weights))
        for total in self.sums:
            total.assign(tf.zeros_like(total))

    @tf.function
    def micro_step(self, triple, told, last):
        shares = self.strategy.run(self.gather, args=(triple, told))
        if last:
            self.strategy.run(self.update)
        return self.strategy.reduce("SUM", shares, axis=None)

    def train(self):
        self.manager.restore_or_initialize()
        for epoch in range(int(self.done.numpy()), self.options.epochs):
            data = self.likes.epoch(epoch, self.options.batch)
            spread = self.strategy.experimental_distribute_dataset(data)
            losses = []
            for number, triple in enumerate(spread, 1):
                last = number % self.options.micro == 0
                losses.append(float(self.micro_step(triple, epoch >= self.options.warm, last)))
            self.margin.assign(1.2 * self.margin)
            self.done.assign(epoch + 1)
            self.manager.save()
            print(f"epoch {epoch}: loss {np.mean(losses):.4f}, margin {self.margin.numpy():.3f}")

    def report(self):
        scores = self.space(tuple(map(tf.constant, self.likes.columns)))
        sizes = [float(tf.reduce_sum(tf.abs(weight))) for weight in self.weights]
        print(f"loss {float(tf.reduce_mean(self.losses(scores))):.4f} gap {float(tf.reduce_mean(scores)):.4f} "
              f"content {sizes[2]:.3f} turn {sizes[3]:.3f} all {sum(sizes):.3f}")


if __name__ == "__main__":
    trainer = Trainer(arguments())
    trainer.train()
    trainer.report()
