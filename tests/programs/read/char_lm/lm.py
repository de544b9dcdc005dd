#!/usr/bin/env python
"""Character language model: one LSTM layer, tied output embedding, averaged weights.

    python lm.py --steps 36 --save-every 9
"""
import argparse
import math
import os

import keras
import numpy as np
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))


def synthetic_text(length, symbols, seed):
    """Second-order Markov text over a small alphabet."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(symbols, 0.12), size=(symbols, symbols))
    text = np.empty(length, np.int32)
    text[:2] = rng.integers(0, symbols, 2)
    for i in range(2, length):
        text[i] = rng.choice(symbols, p=table[text[i - 2], text[i - 1]])
    return text


class CharModel(keras.Model):
    def __init__(self, symbols, units):
        super().__init__()
        self.symbols = symbols
        self.embed = keras.layers.Embedding(symbols, units)
        self.rnn = keras.layers.LSTM(units, return_sequences=True)
        self.project = keras.layers.Dense(units, activation="tanh")

    def output_table(self):
        # the table of the input embedding is the output matrix as well
        return self.embed(tf.range(self.symbols))

    def call(self, ids):
        states = self.project(self.rnn(self.embed(ids)))
        return tf.einsum("btu,su->bts", states, self.output_table())


def train_windows(text, args, first_step):
    """One global batch of windows for each step; which ones depends on the step alone."""
    text = tf.constant(text)
    last = len(text) - args.window - 1

    def draw(step):
        starts = tf.random.stateless_uniform(
            (args.batch,), seed=tf.stack([args.seed, tf.cast(step, tf.int32)]), maxval=last, dtype=tf.int32)
        places = starts[:, None] + tf.range(args.window + 1)[None]
        return tf.gather(text, places)

    return tf.data.Dataset.range(args.steps).skip(first_step).map(draw).prefetch(2)


def dev_windows(text, args):
    count = len(text) // (args.window + 1)
    rows = text[: count * (args.window + 1)].reshape(count, args.window + 1)
    return tf.data.Dataset.from_tensor_slices(rows).batch(args.batch)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=36)
    parser.add_argument("--save-every", type=int, default=9)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--window", type=int, default=12)
    parser.add_argument("--units", type=int, default=24)
    parser.add_argument("--rate", type=float, default=0.8)
    parser.add_argument("--clip", type=float, default=0.35)
    parser.add_argument("--decay", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--dir", default=os.path.join(HERE, "lm_ckpt"))
    args = parser.parse_args()

    keras.utils.set_random_seed(args.seed)
    symbols = 14
    text = synthetic_text(3000, symbols, seed=args.seed)
    train_text, dev_text = text[:2500], text[2500:]

    strategy = tf.distribute.MirroredStrategy()
    replicas = strategy.num_replicas_in_sync
    with strategy.scope():
        model = CharModel(symbols, args.units)
        model(tf.zeros((1, args.window), tf.int32))
        optimizer = keras.optimizers.SGD(args.rate, momentum=0.9)
        optimizer.build(model.trainable_variables)
        average = [tf.Variable(v.numpy(), trainable=False) for v in model.trainable_variables]
        step = tf.Variable(0, dtype=tf.int64, trainable=False)
        best = tf.Variable(math.inf, trainable=False)

    checkpoint = tf.train.Checkpoint(
        model=model, optimizer=optimizer, average=average, step=step, best=best)
    manager = tf.train.CheckpointManager(checkpoint, args.dir, max_to_keep=2)
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint)
        print("resumed at step", int(step.numpy()))

    def nll(ids):
        logits = model(ids[:, :-1])
        return tf.nn.sparse_softmax_cross_entropy_with_logits(ids[:, 1:], logits)

    def replica_step(ids):
        with tf.GradientTape() as tape:
            per_char = nll(ids)
            loss = tf.reduce_sum(per_char) / (args.batch * args.window)
        gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, model.trainable_variables)]
        # the limit holds for the gradient of the whole batch, so add up first
        gradients = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        gradients, _ = tf.clip_by_global_norm(gradients, args.clip)
        # apply_gradients adds up over the replicas once more
        optimizer.apply_gradients(
            [(g / replicas, v) for g, v in zip(gradients, model.trainable_variables)])
        return loss

    @tf.function
    def train_step(ids):
        loss = strategy.reduce("SUM", strategy.run(replica_step, args=(ids,)), axis=None)
        for mean, variable in zip(average, model.trainable_variables):
            mean.assign(args.decay * mean + (1 - args.decay) * variable.value)
        return loss

    @tf.function
    def dev_step(ids):
        def replica(ids):
            per_char = nll(ids)
            return tf.reduce_sum(per_char), tf.cast(tf.size(per_char), tf.float32)
        total, count = strategy.run(replica, args=(ids,))
        return strategy.reduce("SUM", total, axis=None), strategy.reduce("SUM", count, axis=None)

    dev_data = strategy.experimental_distribute_dataset(dev_windows(dev_text, args))

    def perplexity():
        total = count = 0.0
        for ids in dev_data:
            part, size = dev_step(ids)
            total, count = total + float(part), count + float(size)
        return math.exp(total / count)

    windows = strategy.experimental_distribute_dataset(train_windows(train_text, args, int(step.numpy())))
    for ids in windows:
        loss = train_step(ids)
        step.assign_add(1)
        if int(step.numpy()) % args.save_every == 0:
            score = perplexity()
            best.assign(min(score, float(best.numpy())))
            print(f"step {int(step.numpy())}: loss {float(loss):.4f} dev perplexity {score:.4f} best {float(best.numpy()):.4f}")
            manager.save(checkpoint_number=int(step.numpy()))

    size = sum(float(tf.reduce_sum(tf.abs(v.value))) for v in model.trainable_variables)
    for mean, variable in zip(average, model.trainable_variables):
        variable.assign(mean.numpy())
    print(f"final: averaged {perplexity():.5f} best {float(best.numpy()):.5f} weights {size:.5f}")


if __name__ == "__main__":
    main()
