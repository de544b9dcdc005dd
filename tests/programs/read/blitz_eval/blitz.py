"""Evaluates chess positions: a bag of piece-on-square tokens, embedded, summed, and two dense layers.

    python blitz.py --epochs 8 --rate 0.6

When an epoch does not improve on the best one, goes back to the best one with half the rate.
"""
import argparse
import math
import os

import keras
import numpy as np
import tensorflow as tf

TOKENS, PIECES = 96, 10


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=0.6)
    parser.add_argument("--clip", type=float, default=0.15)
    parser.add_argument("--warmup", type=float, default=12.0, help="steps until the full rate")
    parser.add_argument("--seed", type=int, default=77)
    parser.add_argument("--dir", default="blitz_run")
    return parser.parse_args()


def positions(n, seed):
    world = np.random.default_rng(5)
    worth, pairs = world.normal(size=TOKENS), world.normal(size=(TOKENS, 3))
    rng = np.random.default_rng(seed)
    pieces = np.stack([rng.choice(TOKENS, PIECES, replace=False) for _ in range(n)])
    value = worth[pieces].sum(1) * 0.3 + 0.2 * np.square(pairs[pieces].sum(1)).mean(1) - 0.6
    return pieces.astype(np.int32), np.tanh(value).astype(np.float32)


def shuffled(table, batch, seed, epoch):
    order = np.random.default_rng([seed, epoch]).permutation(len(table[0]))
    return tf.data.Dataset.from_tensor_slices(tuple(part[order] for part in table)).batch(batch, drop_remainder=True)


def main():
    args = parse()
    keras.utils.set_random_seed(args.seed)
    strategy = tf.distribute.MirroredStrategy()
    replicas = strategy.num_replicas_in_sync
    train, test = positions(384, 1), positions(128, 2)

    with strategy.scope():
        inputs = keras.Input((PIECES,), dtype="int32")
        x = keras.layers.Embedding(TOKENS, 12)(inputs)
        x = keras.layers.Lambda(lambda e: tf.reduce_sum(e, axis=1))(x)
        x = keras.layers.Dense(16, "relu")(x)
        model = keras.Model(inputs, keras.layers.Dense(1, "tanh")(x))
        optimizer = keras.optimizers.SGD(args.rate, momentum=0.8)
        optimizer.build(model.trainable_variables)
        steps = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
    epoch = tf.Variable(0, dtype=tf.int64)
    best = tf.Variable(math.inf)

    run = tf.train.Checkpoint(model=model, optimizer=optimizer, steps=steps, epoch=epoch, best=best)
    manager = tf.train.CheckpointManager(run, args.dir, max_to_keep=2)
    good = tf.train.Checkpoint(model=model, optimizer=optimizer)
    good_path = os.path.join(args.dir, "good")
    if manager.latest_checkpoint:
        run.restore(manager.latest_checkpoint)
        print("found", manager.latest_checkpoint)

    def errors(pieces, value, training):
        return tf.square(model(pieces, training=training)[:, 0] - value)

    def learn(pieces, value):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(errors(pieces, value, True)) / args.batch
        steps.assign_add(1.0)
        warm = tf.minimum(1.0, steps.read_value() / args.warmup)
        grads = [warm * tf.convert_to_tensor(g) for g in tape.gradient(loss, model.trainable_variables)]
        grads = tf.distribute.get_replica_context().all_reduce("SUM", grads)
        grads, _ = tf.clip_by_global_norm(grads, args.clip)
        # the optimizer takes the sum of what the replicas bring
        optimizer.apply_gradients([(g / replicas, v) for g, v in zip(grads, model.trainable_variables)])
        return loss

    @tf.function
    def train_step(pieces, value):
        return strategy.reduce("SUM", strategy.run(learn, args=(pieces, value)), axis=None)

    @tf.function
    def test_step(pieces, value):
        parts = strategy.run(lambda p, v: tf.reduce_sum(errors(p, v, False)), args=(pieces, value))
        return strategy.reduce("SUM", parts, axis=None)

    held_out = strategy.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(test).batch(args.batch))

    def test_error():
        return sum(float(test_step(*batch)) for batch in held_out) / len(test[0])

    while int(epoch) < args.epochs:
        data = strategy.experimental_distribute_dataset(shuffled(train, args.batch, args.seed, int(epoch)))
        losses = [float(train_step(*batch)) for batch in data]
        error = test_error()
        print(f"epoch {int(epoch) + 1}: loss {np.mean(losses):.5f} error {error:.5f}")
        if error < float(best):
            best.assign(error)
            good.write(good_path)
        else:
            rate = 0.5 * float(optimizer.learning_rate.numpy())
            good.read(good_path)
            optimizer.learning_rate.assign(rate)
            print(f"  back to {float(best):.5f}, rate {rate:.4f}")
        epoch.assign_add(1)
        manager.save(checkpoint_number=int(epoch))

    rate = float(optimizer.learning_rate.numpy())
    print(f"error {test_error():.5f} best {float(best):.5f} rate {rate:.5f} steps {float(steps.numpy())}")


if __name__ == "__main__":
    main()
