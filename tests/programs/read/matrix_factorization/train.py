#!/usr/bin/env python
"""Factorizes a matrix of ratings: users x titles, biased latent factors.

The run keeps two things in its folder: TensorFlow checkpoints (weights, slots) and `state.json` with what
the loop itself remembers. `state.json` is written last and names its checkpoint, so the two always belong together.
"""
import argparse
import json
import math
import os

import numpy as np
import tensorflow as tf
from tensorflow import keras

HERE = os.path.dirname(os.path.abspath(__file__))


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=90)
    parser.add_argument("--titles", type=int, default=60)
    parser.add_argument("--factors", type=int, default=6)
    parser.add_argument("--ratings", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, default=256, help="ratings in one update, all devices together")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--lr", type=float, default=14.0)
    parser.add_argument("--l2", type=float, default=2e-4)
    parser.add_argument("--patience", type=int, default=1, help="epochs without progress before the rate is cut")
    parser.add_argument("--min-gain", type=float, default=0.03)
    parser.add_argument("--cut", type=float, default=0.4)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--run-dir", default=os.path.join(HERE, "run"))
    return parser.parse_args()


def synthesize(args, held_out=300):
    rng = np.random.default_rng(args.seed)
    left = rng.normal(size=(args.users, 4))
    right = rng.normal(size=(args.titles, 4))
    bias = rng.normal(scale=0.4, size=args.users)[:, None] + rng.normal(scale=0.5, size=args.titles)
    full = 3.4 + bias + 0.45 * left @ right.T
    total = args.ratings + held_out
    cells = rng.choice(args.users * args.titles, total, replace=False)
    user, title = np.divmod(cells, args.titles)
    stars = np.clip(full[user, title] + rng.normal(scale=0.3, size=total), 0.5, 5.0)
    columns = user.astype("int32"), title.astype("int32"), stars.astype("float32")
    return tuple(c[:args.ratings] for c in columns), tuple(c[args.ratings:] for c in columns)


class Factorizer(keras.Model):
    def __init__(self, users, titles, factors, mean):
        super().__init__()
        small = keras.initializers.RandomNormal(stddev=0.3, seed=1)
        self.user_factor = keras.layers.Embedding(users, factors, embeddings_initializer=small)
        self.title_factor = keras.layers.Embedding(titles, factors, embeddings_initializer=small)
        self.user_bias = keras.layers.Embedding(users, 1, embeddings_initializer="zeros")
        self.title_bias = keras.layers.Embedding(titles, 1, embeddings_initializer="zeros")
        self.mean = mean

    def call(self, inputs):
        user, title = inputs
        match = tf.reduce_sum(self.user_factor(user) * self.title_factor(title), axis=-1)
        return self.mean + match + self.user_bias(user)[:, 0] + self.title_bias(title)[:, 0]

    def penalty(self, inputs):
        """Squared size of the factors that each example touches."""
        user, title = inputs
        return (tf.reduce_sum(tf.square(self.user_factor(user)), -1)
                + tf.reduce_sum(tf.square(self.title_factor(title)), -1))


def load_state(folder):
    path = os.path.join(folder, "state.json")
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return json.load(file)


def save_state(folder, state):
    path = os.path.join(folder, "state.json")
    with open(path + ".tmp", "w") as file:
        json.dump(state, file, indent=1)
    os.replace(path + ".tmp", path)


def main():
    args = parse()
    os.makedirs(args.run_dir, exist_ok=True)
    keras.utils.set_random_seed(args.seed)
    strategy = tf.distribute.MirroredStrategy()
    train, held = synthesize(args)

    with strategy.scope():
        model = Factorizer(args.users, args.titles, args.factors, float(train[2].mean()))
        model((tf.zeros([1], tf.int32), tf.zeros([1], tf.int32)))
        optimizer = keras.optimizers.SGD(args.lr, momentum=0.85, nesterov=True)
        optimizer.build(model.trainable_variables)
        squares = tf.Variable(0.0, trainable=False, synchronization=tf.VariableSynchronization.ON_READ,
                              aggregation=tf.VariableAggregation.SUM)
        seen = tf.Variable(0.0, trainable=False, synchronization=tf.VariableSynchronization.ON_READ,
                           aggregation=tf.VariableAggregation.SUM)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)

    def step(user, title, stars):
        with tf.GradientTape() as tape:
            error = tf.square(stars - model((user, title))) + args.l2 * model.penalty((user, title))
            loss = tf.nn.compute_average_loss(error, global_batch_size=args.batch_size)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    @tf.function
    def train_step(batch):
        return strategy.reduce("SUM", strategy.run(step, args=batch), axis=None)

    def measure(user, title, stars):
        squares.assign_add(tf.reduce_sum(tf.square(stars - model((user, title)))))
        seen.assign_add(tf.cast(tf.size(stars), tf.float32))

    @tf.function
    def measure_step(batch):
        strategy.run(measure, args=batch)

    def rmse():
        squares.assign(0.0)
        seen.assign(0.0)
        for batch in strategy.experimental_distribute_dataset(
                tf.data.Dataset.from_tensor_slices(held).batch(128)):
            measure_step(batch)
        return math.sqrt(squares.numpy() / seen.numpy())

    def epoch_data(order):
        columns = tuple(c[order] for c in train)

        def pipeline(context):
            size = context.get_per_replica_batch_size(args.batch_size)
            return tf.data.Dataset.from_tensor_slices(columns).batch(size, drop_remainder=True)

        return strategy.distribute_datasets_from_function(pipeline)

    rng = np.random.default_rng(args.seed + 1)
    first, best, bad = 0, math.inf, 0
    state = load_state(args.run_dir)
    if state:
        checkpoint.restore(state["checkpoint"]).assert_consumed()
        optimizer.learning_rate.assign(state["lr"])
        first, best, bad = state["epoch"], state["best"], state["bad"]
        for _ in range(first):      # the orders of the epochs that are done
            rng.permutation(len(train[0]))
        print(f"resuming after epoch {first}")

    for epoch in range(first, args.epochs):
        losses = [float(train_step(batch)) for batch in epoch_data(rng.permutation(len(train[0])))]
        path = checkpoint.save(os.path.join(args.run_dir, "mf"))
        value = rmse()
        if value < best - args.min_gain:
            best, bad = value, 0
        else:
            bad += 1
            if bad >= args.patience:
                optimizer.learning_rate.assign(optimizer.learning_rate * args.cut)
                bad = 0
        rate = float(optimizer.learning_rate.numpy())
        save_state(args.run_dir, {"checkpoint": path, "epoch": epoch + 1, "best": best, "bad": bad, "lr": rate})
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.5f} rmse {value:.5f} lr {rate:.4g}")

    size = sum(float(tf.norm(v)) for v in model.trainable_variables)
    print(f"final: rmse {rmse():.5f} norms {size:.5f}")


if __name__ == "__main__":
    main()
