"""Hyperparameter search: every trial starts from the same first weights and trains for a few epochs.

Finished trials are written to results.json; a search that was interrupted goes on with the next trial.
"""
import argparse
import json
import os
from functools import partial

import keras
import numpy as np
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "search")
RESULTS = os.path.join(FOLDER, "results.json")

SCHEDULES = {
    "constant": lambda lr, step, total: lr,
    "linear": lambda lr, step, total: lr * (1.0 - step / total),
    "cosine": lambda lr, step, total: lr * 0.5 * (1.0 + np.cos(np.pi * step / total)),
}


def trials(count, seed=8):
    rng = np.random.default_rng(seed)
    names = list(SCHEDULES)
    return [{"lr": float(10 ** rng.uniform(-2.0, -0.9)), "schedule": names[n % 3], "l2": float(10 ** rng.uniform(-4, -2))}
            for n in range(count)]


def make_data(rows=288, seed=2):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 12)).astype("float32")
    y = (np.sin(x[:, 0]) + x[:, 1] * x[:, 2] - 0.5 * x[:, 3] + 0.1 * rng.normal(size=rows)).astype("float32")
    return (x[:192], y[:192]), (x[192:], y[192:])


class Search:
    def __init__(self, batch, epochs):
        self.batch, self.epochs = batch, epochs
        self.strategy = tf.distribute.MirroredStrategy()
        self.train, self.valid = make_data()
        with self.strategy.scope():
            dense = partial(keras.layers.Dense, kernel_initializer=keras.initializers.GlorotUniform(seed=5))
            self.model = keras.Sequential([keras.Input((12,)), dense(32, activation="relu"), dense(16, activation="relu"), dense(1)])
            self.optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
            self.optimizer.build(self.model.trainable_variables)
            self.l2 = tf.Variable(0.0, trainable=False)
        self.first = tf.train.Checkpoint(model=self.model, optimizer=self.optimizer)
        self.first_path = self.first.write(os.path.join(FOLDER, "first"))
        self.keeper = tf.train.Checkpoint(model=self.model)

    def replica_step(self, x, y):
        with tf.GradientTape() as tape:
            error = tf.square(y - self.model(x, training=True)[:, 0])
            loss = tf.nn.compute_average_loss(error, global_batch_size=self.batch)
            penalty = self.l2 * tf.add_n([tf.reduce_sum(tf.square(w)) for w in self.model.trainable_variables])
            loss += tf.nn.scale_regularization_loss(penalty)
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return loss

    @tf.function
    def step(self, x, y):
        return self.strategy.reduce("SUM", self.strategy.run(self.replica_step, args=(x, y)), axis=None)

    def begin(self, trial):
        """Same weights, fresh momentum, the learning rate and the penalty of this trial."""
        self.first.read(self.first_path).assert_existing_objects_matched()
        self.optimizer.learning_rate.assign(trial["lr"])
        self.l2.assign(trial["l2"])

    def run_trial(self, trial):
        self.begin(trial)
        x, y = self.train
        steps = len(x) // self.batch
        rate = SCHEDULES[trial["schedule"]]
        start = float(self.optimizer.learning_rate.numpy())
        for epoch in range(self.epochs):
            order = np.random.default_rng(100 + epoch).permutation(len(x))
            data = tf.data.Dataset.from_tensor_slices((x[order], y[order])).batch(self.batch, drop_remainder=True)
            for n, batch in enumerate(self.strategy.experimental_distribute_dataset(data)):
                self.optimizer.learning_rate.assign(rate(start, epoch * steps + n, self.epochs * steps))
                loss = self.step(*batch)
        x, y = self.valid
        return float(loss), float(np.mean((self.model(x)[:, 0].numpy() - y) ** 2))


def read_results():
    if os.path.exists(RESULTS):
        with open(RESULTS) as file:
            return json.load(file)
    return {"finished": [], "best": None}


def write_results(results):
    with open(RESULTS + ".new", "w") as file:
        json.dump(results, file)
    os.replace(RESULTS + ".new", RESULTS)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args()
    os.makedirs(FOLDER, exist_ok=True)
    search = Search(args.batch, args.epochs)
    results = read_results()
    for number, trial in enumerate(trials(args.trials)):
        if number < len(results["finished"]):
            continue
        loss, score = search.run_trial(trial)
        print(f"trial {number} {trial['schedule']:8s} lr {trial['lr']:.4f} l2 {trial['l2']:.5f}: loss {loss:.5f} score {score:.5f}")
        path = search.keeper.write(os.path.join(FOLDER, f"trial-{number}"))
        results["finished"].append({"loss": loss, "score": score})
        if results["best"] is None or score < results["best"]["score"]:
            results["best"] = {"score": score, "path": path, "trial": trial}
        write_results(results)
    best = results["best"]
    search.keeper.read(best["path"]).assert_existing_objects_matched()
    weights = sum(float(np.abs(w).sum()) for w in search.model.get_weights())
    mean = float(np.mean([entry["score"] for entry in results["finished"]]))
    print(f"search over: best {best['score']:.6f} (lr {best['trial']['lr']:.6f}) mean {mean:.6f} weights {weights:.5f}")


if __name__ == "__main__":
    main()
