"""Metric learning for machine parts: outlines of the same part number end up close to each other.

Supervised contrastive loss over the whole batch: every outline is compared with the outlines of all devices,
not only with those that share its device.
"""
import os
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.keras import Model, layers, optimizers, utils


class Hyper(NamedTuple):
    epochs: int = 4
    batch: int = 24
    parts: int = 8
    views: int = 15
    points: int = 24
    width: int = 32
    code: int = 8
    heat: float = 0.2
    rate: float = 0.1
    clip: float = 0.5
    seed: int = 31


HP = Hyper(**{k: type(getattr(Hyper(), k))(os.environ[f"PARTS_{k.upper()}"]) for k in Hyper._fields if f"PARTS_{k.upper()}" in os.environ})


def outlines(hp, seed, views):
    """Radius by angle: a few harmonics of the part, turned a little and with noise."""
    shapes = np.random.default_rng(hp.seed).normal(0, 0.3, (hp.parts, 4, 2))
    rng = np.random.default_rng(seed)
    part = np.repeat(np.arange(hp.parts), views)
    angle = np.linspace(0, 2 * np.pi, hp.points, endpoint=False) + rng.uniform(-0.4, 0.4, (len(part), 1))
    radius = 1 + sum(shapes[part, k, :1] * np.cos((k + 1) * angle) + shapes[part, k, 1:] * np.sin((k + 1) * angle) for k in range(4))
    return (radius + rng.normal(0, 0.05, radius.shape)).astype("float32"), part.astype("int32")


class Embedder(Model):
    def __init__(self, hp):
        super().__init__()
        self.hidden = layers.Dense(hp.width, activation="relu")
        self.code = layers.Dense(hp.code)

    def call(self, outline):
        return tf.math.l2_normalize(self.code(self.hidden(outline)), axis=-1)


def across_devices(tensor):
    return tf.distribute.get_replica_context().all_gather(tensor, axis=0)


def contrastive(codes, parts, numbers, hp):
    """Sum over the outlines of this device of their contrastive losses, divided by the size of the whole batch."""
    all_codes, all_parts, all_numbers = [across_devices(t) for t in (codes, parts, numbers)]
    alike = tf.matmul(codes, all_codes, transpose_b=True) / hp.heat
    itself = tf.cast(numbers[:, None] == all_numbers[None, :], tf.float32)
    others = alike - 1e9 * itself
    log_p = alike - tf.reduce_logsumexp(others, axis=1, keepdims=True)
    positive = tf.cast(parts[:, None] == all_parts[None, :], tf.float32) * (1 - itself)
    per_outline = -tf.math.divide_no_nan(tf.reduce_sum(positive * log_p, axis=1), tf.reduce_sum(positive, axis=1))
    return tf.reduce_sum(per_outline) / hp.batch


class Learner:
    def __init__(self, hp):
        self.hp = hp
        self.strategy = tf.distribute.MirroredStrategy()
        self.outlines, self.parts = outlines(hp, hp.seed + 1, hp.views)
        with self.strategy.scope():
            self.embedder = Embedder(hp)
            self.embedder(self.outlines[:2])
            self.optimizer = optimizers.SGD(hp.rate, momentum=0.9)
            self.optimizer.build(self.embedder.trainable_variables)

    def epoch(self, number):
        rng = np.random.default_rng((self.hp.seed, number))
        order = rng.permutation(len(self.parts))
        data = tf.data.Dataset.from_tensor_slices((self.outlines[order], self.parts[order], order))
        return self.strategy.experimental_distribute_dataset(data.batch(self.hp.batch, drop_remainder=True))

    def device_step(self, outline, part, number):
        weights = self.embedder.trainable_variables
        context = tf.distribute.get_replica_context()
        with tf.GradientTape() as tape:
            loss = contrastive(self.embedder(outline, training=True), part, number, self.hp)
        gradients = context.all_reduce("SUM", tape.gradient(loss, weights))
        gradients = [tf.clip_by_norm(g, self.hp.clip) / context.num_replicas_in_sync for g in gradients]
        self.optimizer.apply_gradients(zip(gradients, weights))
        return loss

    @tf.function
    def step(self, outline, part, number):
        return self.strategy.reduce("SUM", self.strategy.run(self.device_step, args=(outline, part, number)), axis=None)

    def retrieval(self):
        """Share of new views whose nearest neighbour is a view of the same part, and the mean margin."""
        outline, part = outlines(self.hp, self.hp.seed + 2, 6)
        codes = self.embedder(outline).numpy()
        near = codes @ codes.T - 2 * np.eye(len(part))
        same = part[:, None] == part[None, :]
        margin = np.where(same, near, -2).max(1) - np.where(same, -2, near).max(1)
        return float(np.mean(margin > 0)), float(margin.mean())

    def learn(self):
        loss = hit = margin = 0.0
        for number in range(self.hp.epochs):
            loss = np.mean([float(self.step(*batch)) for batch in self.epoch(number)])
            hit, margin = self.retrieval()
            print(f"epoch {number}: loss {loss:.4f} recall@1 {hit:.3f} margin {margin:.4f}")
        return loss, hit, margin


if __name__ == "__main__":
    utils.set_random_seed(HP.seed)
    learner = Learner(HP)
    loss, hit, margin = learner.learn()
    norm = float(tf.linalg.global_norm([w.value for w in learner.embedder.trainable_variables]))
    print(f"loss {loss:.6f} recall {hit:.5f} margin {margin:.6f} norm {norm:.6f}")
