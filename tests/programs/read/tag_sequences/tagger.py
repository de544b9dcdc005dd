"""Tags the words of addresses (street, number, town, other) with an LSTM.

Addresses differ in length; they are padded to the longest, and padding counts neither in the loss nor in the accuracy.
A run that was stopped goes on with the epoch after its last checkpoint.

    python tagger.py --epochs 5
"""
import argparse
import dataclasses
import functools
import os
import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers

BASE = os.path.dirname(os.path.abspath(__file__))
PAD, WORDS, TAGS, LONGEST = 0, 50, 4, 9


@dataclasses.dataclass
class Plan:
    epochs: int = 5
    addresses: int = 128
    held_out: int = 44
    global_batch: int = 32
    width: int = 10
    peak_rate: float = 0.4
    warmup: int = 8
    decay_from: int = 12
    momentum: float = 0.85
    seed: int = 42
    folder: str = os.path.join(BASE, "vault")

    @classmethod
    def from_command_line(cls):
        parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
        for field in dataclasses.fields(cls):
            parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default)
        return cls(**vars(parser.parse_args()))


# ------------------------------------------------------------------ data

def addresses(count, seed):
    """Words 1-19 are mostly of streets, 20-29 numbers, 30-44 towns, 45-49 anything; the tag follows the word and its neighbour."""
    rng = np.random.default_rng(seed)
    words = np.full((count, LONGEST), PAD, "int32")
    tags = np.zeros((count, LONGEST), "int32")
    for row in range(count):
        length = rng.integers(2, LONGEST + 1)
        line = rng.integers(1, WORDS, length)
        label = np.select([line < 20, line < 30, line < 45], [1, 2, 3], 0)
        after_number = np.concatenate([[False], label[:-1] == 2])
        label = np.where(after_number & (label == 1), 3, label)
        words[row, :length], tags[row, :length] = line, label
    return words, tags


class Corpus:
    """Gives the training addresses in another order in every epoch. The orders come from one generator, one after the other."""

    def __init__(self, plan):
        self.plan = plan
        self.words, self.tags = addresses(plan.addresses, plan.seed)
        self.held_out = addresses(plan.held_out, plan.seed + 1)
        self.generator = np.random.default_rng(plan.seed)

    def next_order(self):
        return self.generator.permutation(len(self.words))

    def skip(self, epochs):
        """Leaves out the orders of epochs that were trained before."""
        for _ in range(epochs):
            self.next_order()

    def epoch(self):
        order = self.next_order()
        data = tf.data.Dataset.from_tensor_slices((self.words[order], self.tags[order]))
        return data.batch(self.plan.global_batch, drop_remainder=True)

    def test(self):
        return tf.data.Dataset.from_tensor_slices(self.held_out).batch(self.plan.global_batch)


# ------------------------------------------------------------------ model

def make_model(plan):
    words = keras.Input((LONGEST,), dtype="int32")
    x = layers.Embedding(WORDS, plan.width, embeddings_initializer=keras.initializers.RandomNormal(stddev=0.5))(words)
    x = layers.LSTM(2 * plan.width, return_sequences=True)(x)
    return keras.Model(words, layers.Dense(TAGS)(x), name="tagger")


def make_optimizer(plan, model):
    optimizer = keras.optimizers.SGD(plan.peak_rate, momentum=plan.momentum)
    optimizer.build(model.trainable_variables)
    return optimizer


def masked_errors(words, tags, logits):
    """The summed cross-entropy of the words that are no padding, and their number."""
    mask = tf.cast(words != PAD, tf.float32)
    errors = tf.nn.sparse_softmax_cross_entropy_with_logits(tags, logits)
    return tf.reduce_sum(errors * mask), tf.reduce_sum(mask)


# ------------------------------------------------------------------ checkpoints

class Vault:
    """Keeps the parts of a run that it is given by name."""

    def __init__(self, folder, **parts):
        self.finished = tf.Variable(0, dtype=tf.int64, name="finished_epochs")
        self.checkpoint = tf.train.Checkpoint(finished=self.finished, **parts)
        self.manager = tf.train.CheckpointManager(self.checkpoint, folder, max_to_keep=2)

    def open(self):
        """Restores the newest state, if there is one; returns the number of finished epochs."""
        self.manager.restore_or_initialize()
        return int(self.finished.numpy())

    def close_epoch(self):
        self.finished.assign_add(1)
        self.manager.save()


# ------------------------------------------------------------------ steps

def on_replicas(strategy):
    """Decorator: the function runs in every replica, its results are summed over them."""
    def decorate(function):
        @tf.function
        @functools.wraps(function)
        def everywhere(*tensors):
            results = strategy.run(function, args=tensors)
            return tf.nest.map_structure(lambda value: strategy.reduce("SUM", value, axis=None), results)
        return everywhere
    return decorate


class Tagger:

    def __init__(self, plan):
        self.plan = plan
        self.strategy = tf.distribute.MirroredStrategy()
        self.corpus = Corpus(plan)
        with self.strategy.scope():
            self.model = make_model(plan)
            self.optimizer = make_optimizer(plan, self.model)
        self.updates = tf.Variable(0, dtype=tf.int64, name="updates")
        self.vault = Vault(plan.folder, **self.parts())
        self.train_step, self.test_step = self.make_steps()

    def parts(self):
        return {"model": self.model, "optimizer": self.optimizer, "updates": self.updates}

    def make_steps(self):
        model, optimizer = self.model, self.optimizer

        @on_replicas(self.strategy)
        def train_step(words, tags):
            context = tf.distribute.get_replica_context()
            with tf.GradientTape() as tape:
                total, count = masked_errors(words, tags, model(words, training=True))
                # the words of all replicas: they share the padding unequally
                loss = total / context.all_reduce("SUM", count)
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return loss

        @on_replicas(self.strategy)
        def test_step(words, tags):
            logits = model(words, training=False)
            total, count = masked_errors(words, tags, logits)
            right = tf.equal(tf.argmax(logits, -1, output_type=tf.int32), tags) & (words != PAD)
            return total, tf.reduce_sum(tf.cast(right, tf.float32)), count

        return train_step, test_step

    def rate(self):
        """Grows during the warm-up, falls with the root of the number of updates later."""
        done, plan = int(self.updates.numpy()), self.plan
        if done < plan.warmup:
            return plan.peak_rate * (done + 1) / plan.warmup
        return plan.peak_rate * min(1.0, (plan.decay_from / (done + 1)) ** 0.5)

    def distributed(self, data):
        return self.strategy.experimental_distribute_dataset(data)

    def train_epoch(self):
        losses = []
        for words, tags in self.distributed(self.corpus.epoch()):
            self.optimizer.learning_rate.assign(self.rate())
            losses.append(float(self.train_step(words, tags)))
            self.updates.assign_add(1)
        return float(np.mean(losses))

    def test(self):
        sums = np.zeros(3)
        for words, tags in self.distributed(self.corpus.test()):
            sums += [float(value) for value in self.test_step(words, tags)]
        total, right, count = sums
        return total / count, right / count

    def run(self):
        finished = self.vault.open()
        self.corpus.skip(finished)
        for epoch in range(finished, self.plan.epochs):
            began = time.perf_counter()
            loss = self.train_epoch()
            self.vault.close_epoch()
            test_loss, accuracy = self.test()
            print(f"epoch {epoch + 1}: loss {loss:.5f} test {test_loss:.5f} accuracy {accuracy:.4f}")
            print(f"  took {time.perf_counter() - began:.0f} s, rate for the next update {self.rate():.3f}")
        return self.test()


def main():
    plan = Plan.from_command_line()
    keras.utils.set_random_seed(plan.seed)
    tagger = Tagger(plan)
    loss, accuracy = tagger.run()
    weights = sum(float(np.abs(w).sum()) for w in tagger.model.get_weights())
    print(f"tagger: test loss {loss:.6f} accuracy {accuracy:.5f} weights {weights:.5f}")


if __name__ == "__main__":
    main()
