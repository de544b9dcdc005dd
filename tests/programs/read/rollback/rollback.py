"""If validation gets clearly worse, go back to the last good checkpoint and halve the rate.  Resumable."""
import argparse
import json
import os

import keras
import numpy as np
import tensorflow as tf


def data(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5)).astype("float32")
    return x, (x[:, 0] * x[:, 1] + np.sin(3 * x[:, 2]) + 0.2 * rng.normal(size=n)).astype("float32")


class Run:
    def __init__(self, args):
        self.args = args
        keras.utils.set_random_seed(5)
        self.strategy = tf.distribute.MirroredStrategy()
        with self.strategy.scope():
            self.model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(24, activation="tanh"), keras.layers.Dense(1)])
            self.optimizer = keras.optimizers.SGD(args.lr, momentum=0.9)
            self.optimizer.build(self.model.trainable_variables)
        self.good = tf.train.Checkpoint(model=self.model, optimizer=self.optimizer)
        self.status = {"epoch": 0, "lr": args.lr, "best": None, "file": None, "rollbacks": 0}
        self.status_file = os.path.join(args.dir, "status.json")

    def resume(self):
        if os.path.exists(self.status_file):
            with open(self.status_file) as f:
                self.status = json.load(f)
            self.good.read(self.status["file"]).assert_consumed()
            self.optimizer.learning_rate.assign(self.status["lr"])
            print(f"resumed after epoch {self.status['epoch']}")

    def write_status(self):
        with open(self.status_file + ".tmp", "w") as f:
            json.dump(self.status, f)
        os.replace(self.status_file + ".tmp", self.status_file)

    @tf.function
    def step(self, x, y):
        def replica(x, y):
            with tf.GradientTape() as tape:
                loss = tf.nn.compute_average_loss(tf.square(self.model(x)[:, 0] - y), global_batch_size=self.args.batch)
            v = self.model.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, v), v))
            return loss
        return self.strategy.reduce("SUM", self.strategy.run(replica, args=(x, y)), axis=None)

    def epoch(self):
        e = self.status["epoch"]
        ds = tf.data.Dataset.from_tensor_slices(data(256, 1)).shuffle(256, seed=e).batch(self.args.batch)
        loss = np.mean([self.step(*b).numpy() for b in self.strategy.experimental_distribute_dataset(ds)])
        x, y = data(128, 2)
        value = round(float(tf.reduce_mean(tf.square(self.model(x)[:, 0] - y))), 5)
        best = self.status["best"]
        self.status["epoch"] = e + 1
        if best is not None and (not np.isfinite(value) or value > 1.05 * best):
            self.good.read(self.status["file"])
            self.status["lr"] *= 0.5
            self.optimizer.learning_rate.assign(self.status["lr"])
            self.status["rollbacks"] += 1
            word = "back"
        else:
            self.status["best"] = value if best is None else min(best, value)
            self.status["file"] = self.good.write(os.path.join(self.args.dir, f"good_{e + 1}"))
            word = "kept"
        self.write_status()
        print(f"epoch {e + 1}: loss {loss:.4f} val {value:.4f} {word}, rate {self.status['lr']:.4g}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=14)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--lr", type=float, default=0.12)
    p.add_argument("--dir", default="rollback")
    args = p.parse_args()
    os.makedirs(args.dir, exist_ok=True)
    run = Run(args)
    run.resume()
    while run.status["epoch"] < args.epochs:
        run.epoch()
    print(f"best {run.status['best']:.4f} with {run.status['rollbacks']} rollbacks")


if __name__ == "__main__":
    main()
