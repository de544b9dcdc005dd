"""Cross-validation of a network that predicts whether a pot cracks in the kiln.

python kiln.py --folds 3 --epochs 5

Finished folds are kept in kiln_folds.json and are not computed again.
"""
import argparse
import json
import os

import keras
import numpy as np
import tensorflow as tf

RESULTS = "kiln_folds.json"


def pots(count, seed):
    """Thickness, dampness and so on of pots, in the order in which they were fired: each week another clay."""
    rng = np.random.default_rng(seed)
    week = np.arange(count) // 25
    x = rng.normal(size=(count, 8)) * 1.5 + rng.normal(size=(count // 25 + 1, 8))[week]
    risk = x[:, 0] * x[:, 1] + x[:, 2] - 0.5 * x[:, 3]
    y = (risk + 0.5 * rng.normal(size=count) > 0.4).astype("float32")
    return x.astype("float32"), y


def network(seed):
    start = [keras.initializers.GlorotUniform(seed=seed + number) for number in range(3)]
    return keras.Sequential([
        keras.Input((8,)),
        keras.layers.BatchNormalization(synchronized=True, momentum=0.8),
        keras.layers.Dense(24, "relu", kernel_initializer=start[0]),
        keras.layers.Dense(12, "relu", kernel_initializer=start[1]),
        keras.layers.Dense(1, kernel_initializer=start[2]),
    ])


class Fold:
    """A model of its own for each fold, with what trains and tests it."""

    def __init__(self, strategy, seed, batch):
        self.strategy, self.batch = strategy, batch
        with strategy.scope():
            self.model = network(seed)
            self.optimizer = keras.optimizers.Adam(0.01)
            self.optimizer.build(self.model.trainable_variables)
        self.step = tf.function(self.train_step)

    def learn(self, x, y):
        with tf.GradientTape() as tape:
            logits = self.model(x, training=True)[:, 0]
            losses = tf.nn.sigmoid_cross_entropy_with_logits(y, logits)
            penalty = 1e-3 * tf.add_n([tf.nn.l2_loss(each.kernel) for each in self.model.layers[1:]])
            loss = tf.nn.compute_average_loss(losses, global_batch_size=self.batch)
            total = loss + tf.nn.scale_regularization_loss(penalty)
        weights = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(total, weights), weights))
        hits = tf.reduce_sum(tf.cast((logits > 0) == (y > 0.5), tf.float32))
        return {"loss": loss, "accuracy": hits / self.batch}

    def train_step(self, x, y):
        shares = self.strategy.run(self.learn, args=(x, y))
        return {name: self.strategy.reduce("SUM", share, axis=None) for name, share in shares.items()}

    def train(self, x, y, epochs, seed):
        history = []
        for epoch in range(epochs):
            order = np.random.default_rng((seed, epoch)).permutation(len(x))
            data = tf.data.Dataset.from_tensor_slices((x[order], y[order])).batch(self.batch, drop_remainder=True)
            data = self.strategy.experimental_distribute_dataset(data)
            steps = [{name: float(value) for name, value in self.step(*batch).items()} for batch in data]
            history.append({name: np.mean([step[name] for step in steps]) for name in steps[0]})
        return history

    def test(self, x, y):
        logits = self.model(x, training=False).numpy()[:, 0]
        losses = np.logaddexp(0, logits) - y * logits
        return {"test_accuracy": float(np.mean((logits > 0) == (y > 0.5))), "test_loss": float(losses.mean())}


def finished():
    if not os.path.exists(RESULTS):
        return {}
    with open(RESULTS) as file:
        return json.load(file)


def keep(results):
    with open(RESULTS + ".new", "w") as file:
        json.dump(results, file, indent=2)
    os.replace(RESULTS + ".new", RESULTS)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seed", type=int, default=9)
    args = parser.parse_args()

    strategy = tf.distribute.MirroredStrategy()
    x, y = pots(290, args.seed)
    part = np.random.default_rng(args.seed).permutation(len(x)) % args.folds
    results = finished()
    for number in range(args.folds):
        if str(number) in results:
            continue
        fold = Fold(strategy, args.seed + 10 * number, args.batch)
        history = fold.train(x[part != number], y[part != number], args.epochs, args.seed + number)
        result = {**history[-1], **fold.test(x[part == number], y[part == number])}
        results[str(number)] = result
        print(f"fold {number}: " + ", ".join(f"{name} {value:.4f}" for name, value in result.items()))
        keep(results)

    mean = {name: np.mean([result[name] for result in results.values()]) for name in results["0"]}
    print("all folds: " + ", ".join(f"{name} {value:.4f}" for name, value in mean.items())
          + f", spread {np.std([result['test_loss'] for result in results.values()]):.4f}")


if __name__ == "__main__":
    main()
