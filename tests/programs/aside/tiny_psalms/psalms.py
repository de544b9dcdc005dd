"""A small transformer that continues a made-up chant, one character at a time.

Each update adds up the gradients of several small batches. A start after it was stopped goes on in the middle of the epoch.
"""
import argparse
import math

import keras
import numpy as np
import tensorflow as tf

LETTERS, LENGTH = 12, 16


def chant(length, seed):
    rng = np.random.default_rng(seed)
    verses = [rng.integers(1, LETTERS, rng.integers(4, 8)) for _ in range(5)]
    text = []
    while len(text) < length:
        text += [*verses[rng.choice(5, p=[0.4, 0.3, 0.1, 0.1, 0.1])], 0]
    return np.array(text[:length], np.int32)


class Block(keras.layers.Layer):
    def __init__(self, width, heads, **kwargs):
        super().__init__(**kwargs)
        self.attention = keras.layers.MultiHeadAttention(heads, width // heads)
        self.before, self.between = keras.layers.LayerNormalization(), keras.layers.LayerNormalization()
        self.wide = keras.layers.Dense(2 * width, "gelu")
        self.narrow = keras.layers.Dense(width)

    def call(self, x):
        normed = self.before(x)
        x = x + self.attention(normed, normed, use_causal_mask=True)
        return x + self.narrow(self.wide(self.between(x)))


class Psalmist(keras.Model):
    def __init__(self, width=16, heads=2, depth=2):
        super().__init__()
        self.letters = keras.layers.Embedding(LETTERS, width)
        self.places = keras.layers.Embedding(LENGTH, width)
        self.blocks = tuple(Block(width, heads) for _ in range(depth))
        self.last = keras.layers.Dense(LETTERS)

    def call(self, ids):
        x = self.letters(ids) + self.places(tf.range(tf.shape(ids)[1]))
        for block in self.blocks:
            x = block(x)
        return self.last(x)


def rate_at(step, args, steps):
    """Rises in the first steps, and falls like a cosine to a tenth."""
    if step < args.warm:
        return args.rate * (step + 1) / args.warm
    return args.rate * (0.55 + 0.45 * math.cos(math.pi * (step - args.warm) / (steps - args.warm)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--parts", type=int, default=3, help="small batches of an update")
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--warm", type=int, default=6)
    parser.add_argument("--save-every", type=int, default=4)
    parser.add_argument("--seed", type=int, default=41)
    args = parser.parse_args()
    keras.utils.set_random_seed(args.seed)

    text = chant(2200, args.seed)
    rows = np.lib.stride_tricks.sliding_window_view(text[:1800], LENGTH + 1)[::8]
    dev = np.lib.stride_tricks.sliding_window_view(text[1800:], LENGTH + 1)[:: LENGTH]
    updates = len(rows) // (args.batch * args.parts)  # of an epoch
    steps = args.epochs * updates

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = Psalmist()
        model(tf.zeros((1, LENGTH), tf.int32))
        optimizer = keras.optimizers.Adam(args.rate)
        optimizer.build(model.trainable_variables)
        totals = [
            tf.Variable(tf.zeros(weight.shape), trainable=False, aggregation=tf.VariableAggregation.MEAN,
                        synchronization=tf.VariableSynchronization.ON_READ)
            for weight in model.trainable_variables
        ]
        step = tf.Variable(0, dtype=tf.int64, trainable=False)
        smooth = tf.Variable(math.log(LETTERS), trainable=False)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step, smooth=smooth)
    manager = tf.train.CheckpointManager(checkpoint, "psalms", max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)

    def parts_of(epoch, skipped):
        order = np.random.default_rng((args.seed, epoch)).permutation(len(rows))[: updates * args.batch * args.parts]
        data = tf.data.Dataset.from_tensor_slices(rows[order]).batch(args.batch).skip(skipped * args.parts)
        return iter(strategy.experimental_distribute_dataset(data))

    def add(ids):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(ids[:, 1:], model(ids[:, :-1], training=True))
            loss = tf.nn.compute_average_loss(tf.reduce_mean(losses, 1), global_batch_size=args.batch * args.parts)
        for total, gradient in zip(totals, tape.gradient(loss, model.trainable_variables)):
            total.assign_add(tf.convert_to_tensor(gradient))
        return loss

    def apply():
        optimizer.apply_gradients([(total.read_value(), weight) for total, weight in zip(totals, model.trainable_variables)])
        for total in totals:
            total.assign(tf.zeros_like(total))

    @tf.function
    def add_step(ids):
        return strategy.reduce("SUM", strategy.run(add, args=(ids,)), axis=None)

    @tf.function
    def apply_step():
        strategy.run(apply)

    def dev_loss():
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(dev[:, 1:], model(dev[:, :-1]))
        return float(tf.reduce_mean(losses))

    while int(step.numpy()) < steps:
        epoch, done = divmod(int(step.numpy()), updates)
        parts = parts_of(epoch, done)
        for _ in range(done, updates):
            optimizer.learning_rate.assign(rate_at(int(step.numpy()), args, steps))
            loss = sum(float(add_step(next(parts))) for _ in range(args.parts))
            apply_step()
            smooth.assign(0.9 * smooth + 0.1 * loss)
            step.assign_add(1)
            if int(step.numpy()) % args.save_every == 0 or int(step.numpy()) == steps:
                print(f"update {int(step.numpy())}: loss {loss:.4f}, smooth {float(smooth.numpy()):.4f}, "
                      f"dev {dev_loss():.4f}, rate {float(optimizer.learning_rate.numpy()):.5f}")
                manager.save(checkpoint_number=int(step.numpy()))

    print(f"after {int(step.numpy())} updates: perplexity {math.exp(dev_loss()):.4f}, smooth {float(smooth.numpy()):.4f}, "
          f"rate {float(optimizer.learning_rate.numpy()):.5f}")


if __name__ == "__main__":
    main()
