"""Train the churn model as a job that may be preempted.

    python train.py --epochs 14

A second call in the same work folder goes on after the last epoch that was saved.
"""
import argparse
import logging
import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import averaging
import network
import tabular

log = logging.getLogger("churn")


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.15)
    parser.add_argument("--decay", type=float, default=0.93)
    parser.add_argument("--patience", type=int, default=3)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--workdir", type=Path, default=Path(__file__).resolve().parent / "job")
    return parser.parse_args(argv)


class Stopper(tf.Module):
    """Early stopping on a value that should fall."""

    def __init__(self, patience):
        super().__init__()
        self.patience = patience
        self.best = tf.Variable(np.inf, dtype=tf.float32, trainable=False)
        self.waited = tf.Variable(0, dtype=tf.int64, trainable=False)

    def improved(self, value):
        if value < self.best.numpy():
            self.best.assign(value)
            self.waited.assign(0)
            return True
        self.waited.assign_add(1)
        return False

    @property
    def finished(self):
        return int(self.waited.numpy()) >= self.patience


class Job:
    def __init__(self, args):
        self.args = args
        self.strategy = tf.distribute.MirroredStrategy()
        self.train_table, self.valid_table = tabular.load(192, 150, args.seed)
        self.objective = network.Objective(args.batch)
        with self.strategy.scope():
            self.model = network.build()
            self.optimizer = keras.optimizers.SGD(args.lr, momentum=0.9)
            self.optimizer.build(self.model.trainable_variables)
            self.average = averaging.Average(self.model.trainable_variables, args.decay)
            self.stopper = Stopper(args.patience)
            self.epoch = tf.Variable(0, dtype=tf.int64, trainable=False)
        args.workdir.mkdir(parents=True, exist_ok=True)
        self.manager = tf.train.CheckpointManager(
            tf.train.Checkpoint(**self.state()), str(args.workdir / "epochs"), max_to_keep=2)
        self.best = tf.train.Checkpoint(average=self.average)
        self.best_path = str(args.workdir / "best" / "average")

    def state(self):
        items = {"model": self.model, "optimizer": self.optimizer}
        items.update(average=self.average, stopper=self.stopper)
        items["epoch"] = self.epoch
        return items

    # ---- one step on each device -------------------------------------------------------------
    def _learn(self, features, target):
        with tf.GradientTape() as tape:
            logit = self.model(features, training=True)
            loss = self.objective.total(target, logit)
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    def _judge(self, features, target):
        logit = self.model(features, training=False)
        right = tf.cast(tf.equal(logit > 0.0, target > 0.5), tf.float32)
        return (tf.reduce_sum(self.objective.each(target, logit)), tf.reduce_sum(right),
                tf.cast(tf.size(target), tf.float32))

    @tf.function
    def learn(self, features, target):
        return self.strategy.reduce("SUM", self.strategy.run(self._learn, args=(features, target)), axis=None)

    @tf.function
    def judge(self, features, target):
        parts = self.strategy.run(self._judge, args=(features, target))
        return [self.strategy.reduce("SUM", part, axis=None) for part in parts]

    # ---- epochs ------------------------------------------------------------------------------
    def train_epoch(self, epoch):
        data = tabular.training_batches(self.train_table, self.args.batch, self.args.seed, epoch)
        losses = []
        for features, target in self.strategy.experimental_distribute_dataset(data):
            losses.append(float(self.learn(features, target)))
            self.average.update()
        return sum(losses) / len(losses)

    def validate(self):
        data = tabular.validation_batches(self.valid_table, self.args.batch)
        sums = np.zeros(3)
        with self.average.swapped_in():
            for features, target in self.strategy.experimental_distribute_dataset(data):
                sums += [float(part) for part in self.judge(features, target)]
        return sums[0] / sums[2], sums[1] / sums[2]

    def resume(self):
        if self.manager.latest_checkpoint:
            self.manager.checkpoint.restore(self.manager.latest_checkpoint).assert_existing_objects_matched()
            log.info("resumed after epoch %d", int(self.epoch.numpy()))

    def run(self):
        self.resume()
        first = int(self.epoch.numpy())
        for epoch in range(first, self.args.epochs):
            if self.stopper.finished:
                log.info("no improvement for %d epochs", self.args.patience)
                break
            train_loss = self.train_epoch(epoch)
            valid_loss, accuracy = self.validate()
            mark = ""
            if self.stopper.improved(valid_loss):
                self.best.write(self.best_path)
                mark = " *"
            log.info("epoch %d: train %.5f valid %.5f accuracy %.4f%s", epoch + 1, train_loss, valid_loss, accuracy, mark)
            self.epoch.assign(epoch + 1)
            self.manager.save()
        last = self.validate()[0]
        weights = sum(float(np.abs(w.numpy()).sum()) for w in self.model.trainable_variables)
        self.best.read(self.best_path).assert_existing_objects_matched()
        best = self.validate()[0]
        averaged = sum(float(np.abs(s.numpy()).sum()) for s in self.average.shadow)
        return last, best, weights, averaged


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s", force=True)
    last, best, weights, averaged = Job(parse()).run()
    print(f"final: last {last:.6f} best {best:.6f} weights {weights:.5f} averaged {averaged:.5f}")


if __name__ == "__main__":
    main()
