"""Retrieval of answers: a query tower learns against a slowly moving key tower."""
import argparse
import os
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

import corpus
import towers

ROOT = os.path.dirname(os.path.abspath(__file__))


@dataclass
class Plan:
    epochs: int = 4
    batch: int = 24
    pairs: int = 192
    checks: int = 60
    rate: float = 0.1
    follow: float = 0.8        # how much of the key tower stays at each step
    sharpness: float = 6.0
    seed: int = 6
    folder: str = os.path.join(ROOT, "snapshots")


class Snapshots:
    """Everything that a stopped run needs, under one name each."""

    def __init__(self, folder, **parts):
        self.checkpoint = tf.train.Checkpoint(**parts)
        self.manager = tf.train.CheckpointManager(self.checkpoint, folder, max_to_keep=2)

    def load(self):
        path = self.manager.latest_checkpoint
        if path is None:
            return False
        self.checkpoint.restore(path).assert_existing_objects_matched()
        return True

    def store(self, number):
        self.manager.save(checkpoint_number=number)


class Retrieval:

    def __init__(self, strategy, plan):
        self.strategy, self.plan = strategy, plan
        with strategy.scope():
            self.query = towers.text_tower()
            self.key = keras.models.clone_model(self.query)
            self.key.set_weights(self.query.get_weights())
            self.key.trainable = False
            self.optimizer = keras.optimizers.SGD(plan.rate, momentum=0.9)
            self.optimizer.build(self.query.trainable_variables)
            self.closeness = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.MEAN)
            self.epoch = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.snapshots = Snapshots(
            plan.folder, query=self.query, key=self.key, optimizer=self.optimizer,
            closeness=self.closeness, epoch=self.epoch)

    def data(self, part):
        data = tf.data.Dataset.from_tensor_slices(part).batch(self.plan.batch)
        return self.strategy.experimental_distribute_dataset(data)

    def step(self, questions, answers):
        """One update in a replica; the loss counts in the mean over the global batch."""
        keys = towers.unit(self.key(answers, training=False))
        with tf.GradientTape() as tape:
            queries = towers.unit(self.query(questions, training=True))
            # the nearer the pairs are already, the sharper the comparison
            sharpness = self.plan.sharpness * (1.0 + self.closeness)
            losses = towers.contrast(queries, keys, sharpness)
            loss = tf.reduce_sum(losses) / self.plan.batch
        gradients = tape.gradient(loss, self.query.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.query.trainable_variables))
        near = tf.reduce_mean(tf.reduce_sum(queries * keys, axis=-1))
        self.closeness.assign(0.9 * self.closeness + 0.1 * near)
        return loss

    @tf.function
    def train_step(self, questions, answers):
        loss = self.strategy.run(self.step, args=(questions, answers))
        self.follow()
        return self.strategy.reduce("SUM", loss, axis=None)

    def follow(self):
        stay = self.plan.follow
        for key, query in zip(self.key.weights, self.query.weights):
            key.assign(stay * key.value + (1.0 - stay) * query.value)

    @tf.function
    def vectors(self, questions, answers):
        def one(questions, answers):
            return (towers.unit(self.query(questions, training=False)),
                    towers.unit(self.key(answers, training=False)))
        queries, keys = self.strategy.run(one, args=(questions, answers))
        return self.strategy.gather(queries, axis=0), self.strategy.gather(keys, axis=0)

    def check(self, part):
        """Mean rank (from 0) of the right answer among all, and mean likeness of the pairs."""
        found = [self.vectors(q, a) for q, a in self.data(part)]
        queries, keys = (np.concatenate([pair[i].numpy() for pair in found]) for i in (0, 1))
        scores = queries @ keys.T
        right = np.diag(scores)
        ranks = (scores > right[:, None]).sum(1)
        return float(ranks.mean()), float(right.mean())

    def train(self, train, check):
        while int(self.epoch.numpy()) < self.plan.epochs:
            number = int(self.epoch.numpy()) + 1
            batches = self.data(corpus.shuffled(train, self.plan.seed, number))
            losses = [float(self.train_step(q, a)) for q, a in batches]
            self.epoch.assign_add(1)
            rank, near = self.check(check)
            print(f"epoch {number}: loss {np.mean(losses):.4f} rank {rank:.2f} likeness {near:.4f}")
            self.snapshots.store(number)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("epochs", "batch", "seed"):
        parser.add_argument("--" + name, type=int, default=getattr(Plan, name))
    plan = Plan(**vars(parser.parse_args()))
    keras.utils.set_random_seed(plan.seed)
    retrieval = Retrieval(tf.distribute.MirroredStrategy(), plan)
    if retrieval.snapshots.load():
        print("going on from epoch", int(retrieval.epoch.numpy()))
    check = corpus.pairs(plan.checks, seed=2)
    retrieval.train(corpus.pairs(plan.pairs, seed=1), check)
    _, near = retrieval.check(check)
    sizes = [sum(np.abs(w).sum() for w in tower.get_weights()) for tower in (retrieval.query, retrieval.key)]
    print(f"final: likeness {near:.5f} closeness {float(retrieval.closeness.numpy()):.5f} "
          f"query {sizes[0]:.5f} key {sizes[1]:.5f}")


if __name__ == "__main__":
    main()
