#!/usr/bin/env python3
"""Masked-glyph pretraining of a small encoder, with gradient accumulation and averaged weights.

Every update sees `--micro` batches. The loss is the mean over all masked glyphs of the update, wherever they are.
"""
import argparse

import keras
import numpy as np
import tensorflow as tf

GLYPHS, LENGTH, MASK = 24, 16, 24


def corpus(rows, seed):
    """Rows of glyphs, each made by repeating a motif with small changes; 0 fills the rest."""
    rng = np.random.default_rng(seed)
    table = np.zeros((rows, LENGTH), np.int32)
    for row in table:
        motif = 1 + rng.integers(0, GLYPHS - 1) + rng.integers(0, 4, rng.integers(2, 5))
        length = rng.integers(4, LENGTH + 1)
        row[:length] = 1 + (np.resize(motif, length) - 1) % (GLYPHS - 1)
    return table[np.argsort((table > 0).sum(1) + 4 * rng.random(rows))]


class Encoder(keras.Model):
    def __init__(self, units, seed):
        super().__init__()
        draw = lambda n: keras.initializers.RandomNormal(0, 0.15, seed=seed + n)  # noqa: E731
        self.glyph = keras.layers.Embedding(GLYPHS + 1, units, draw(0))
        self.place = keras.layers.Embedding(LENGTH, units, draw(1))
        self.look = keras.layers.MultiHeadAttention(2, units // 2, kernel_initializer=draw(2))
        self.norm = keras.layers.LayerNormalization()
        self.mix = keras.layers.Dense(units, "gelu", kernel_initializer=draw(3))
        self.out = keras.layers.Dense(GLYPHS, kernel_initializer=draw(4))

    def call(self, ids):
        x = self.glyph(ids) + self.place(tf.range(LENGTH))
        x = x + self.look(x, x, attention_mask=(ids > 0)[:, None, :])
        return self.out(self.norm(x + self.mix(x)))


def hide(ids, number):
    """Hides about a fifth of the glyphs; which ones depends on the number of the batch."""
    chance = tf.random.stateless_uniform(tf.shape(ids), seed=tf.stack([7, tf.cast(number, tf.int32)]))
    hidden = (chance < 0.2) & (ids > 0)
    return tf.where(hidden, MASK, ids), ids, tf.cast(hidden, tf.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--save-every", type=int, default=5)
    parser.add_argument("--micro", type=int, default=3)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--decay", type=float, default=0.85)
    parser.add_argument("--out", default="glyphs")
    args = parser.parse_args()

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = Encoder(16, seed=40)
        model(tf.zeros((1, LENGTH), tf.int32))
        weights = model.trainable_variables
        optimizer = keras.optimizers.Adam(args.rate)
        optimizer.build(weights)
        averages = [tf.Variable(w.numpy(), trainable=False) for w in weights]
        done = tf.Variable(0, dtype=tf.int64, trainable=False)
        local = dict(synchronization=tf.VariableSynchronization.ON_READ,
                     aggregation=tf.VariableAggregation.SUM, trainable=False)
        sums = [tf.Variable(tf.zeros(w.shape), **local) for w in weights]
        total, count = tf.Variable(0.0, **local), tf.Variable(0.0, **local)

    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, averages=averages, done=done)
    manager = tf.train.CheckpointManager(checkpoint, args.out, max_to_keep=3)
    path = manager.restore_or_initialize()
    if path:
        print("restored", path)

    def collect(ids, targets, hidden):
        with tf.GradientTape() as tape:
            logits = model(ids)
            labels = tf.maximum(targets - 1, 0)
            loss = tf.reduce_sum(hidden * tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        for kept, gradient in zip(sums, tape.gradient(loss, weights)):
            kept.assign_add(tf.convert_to_tensor(gradient))
        total.assign_add(loss)
        count.assign_add(tf.reduce_sum(hidden))

    def update():
        replica = tf.distribute.get_replica_context()
        everywhere = replica.all_reduce("SUM", count.read_value())
        optimizer.apply_gradients([(kept / everywhere, w) for kept, w in zip(sums, weights)])
        loss = total / everywhere
        for each in (*sums, total, count):
            each.assign(tf.zeros_like(each))
        return loss

    @tf.function
    def collect_step(batch):
        strategy.run(collect, args=batch)

    @tf.function
    def update_step():
        loss = strategy.reduce("SUM", strategy.run(update), axis=None)
        for average, w in zip(averages, weights):
            average.assign(args.decay * average + (1 - args.decay) * w.value)
        return loss

    rows = corpus(args.batch * 12, seed=3)
    first = int(done.numpy()) * args.micro
    data = tf.data.Dataset.from_tensor_slices(rows).batch(args.batch).repeat().enumerate().skip(first)
    data = data.map(lambda number, ids: hide(ids, number))
    stream = iter(strategy.experimental_distribute_dataset(data))
    while int(done.numpy()) < args.updates:
        for _ in range(args.micro):
            collect_step(next(stream))
        loss = float(update_step())
        done.assign_add(1)
        if int(done.numpy()) % args.save_every == 0:
            manager.save(checkpoint_number=done)
            print(f"update {int(done.numpy())}: loss {loss:.4f}", flush=True)

    for w, average in zip(weights, averages):
        w.assign(average.numpy())
    ids, targets, hidden = (each.numpy() for each in hide(tf.constant(corpus(96, seed=4)), 10_000))
    guess = 1 + model(ids).numpy().argmax(-1)
    right = (guess == targets)[hidden > 0].mean()
    size = sum(float(np.abs(w.numpy()).sum()) for w in weights)
    print(f"averaged weights: accuracy {right:.4f}, size {size:.4f}, moments "
          f"{sum(float(np.abs(v.numpy()).sum()) for v in optimizer.variables[2:]):.4f}")


if __name__ == "__main__":
    main()
