"""Learns the temperature of an oven from much simulated data, then its failures from a little real data.

The first part is small and runs on one device; the second on all of them.
"""
import argparse
import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import nets


def sensors(rows, seed, drift=0.0):
    rng = np.random.default_rng(seed)
    heat = rng.normal(size=(rows, 1))
    mix = np.random.default_rng(8).normal(size=(1, 9))
    x = np.tanh(heat @ mix + drift) + 0.3 * rng.normal(size=(rows, 9))
    fails = (np.abs(heat[:, 0] + 0.4 * x[:, 3]) > 1.0).astype("float32")
    return x.astype("float32"), heat.astype("float32"), fails


def pretrain(path, args):
    x, heat, _ = sensors(512, 1)
    model = nets.with_head(nets.trunk(), 1, 33, "heat")
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), "mse")
    model.fit(x, heat, batch_size=args.batch, epochs=2, shuffle=False, verbose=0)
    model.save(path)
    print(f"simulated: {model.evaluate(x, heat, verbose=0):.4f}")


class Finetuning:
    def __init__(self, path, args):
        self.args = args
        self.strategy = tf.distribute.MirroredStrategy()
        with self.strategy.scope():
            self.model = self.attach(keras.models.load_model(path))
            self.slow, self.fast = self.groups()
            self.optimizers = keras.optimizers.SGD(args.rate / 4, momentum=0.9), keras.optimizers.SGD(args.rate, momentum=0.9)
            for optimizer, group in zip(self.optimizers, (self.slow, self.fast)):
                optimizer.build(group)

    def attach(self, pretrained):
        body = keras.Model(pretrained.inputs, pretrained.layers[-2].output)
        body.layers[1].trainable = False
        return nets.with_head(body, 1, 34, "fails")

    def groups(self):
        head = self.model.get_layer("fails").trainable_variables
        return [v for v in self.model.trainable_variables if all(v is not h for h in head)], head

    def data(self, rows, seed):
        x, _, fails = sensors(rows, seed, drift=0.2)
        return tf.data.Dataset.from_tensor_slices((x, fails)).batch(self.args.batch, drop_remainder=True)

    def one(self, x, y):
        with tf.GradientTape() as tape:
            each = tf.nn.sigmoid_cross_entropy_with_logits(y, self.model(x, training=True)[:, 0])
            loss = tf.reduce_mean(each) / self.strategy.num_replicas_in_sync
        slow, fast = tape.gradient(loss, [self.slow, self.fast])
        self.optimizers[0].apply_gradients(zip(slow, self.slow))
        self.optimizers[1].apply_gradients(zip(fast, self.fast))
        return loss

    @tf.function
    def step(self, x, y):
        return self.strategy.reduce("SUM", self.strategy.run(self.one, args=(x, y)), axis=None)

    def __call__(self):
        data = self.strategy.experimental_distribute_dataset(self.data(320, 2))
        for epoch in range(self.args.epochs):
            losses = [float(self.step(x, y)) for x, y in data]
            print(f"real {epoch}: {np.mean(losses):.4f}")
        x, _, fails = sensors(100, 3, drift=0.2)
        logits = self.model(x).numpy()[:, 0]
        slow, fast = (sum(float(np.abs(v.numpy()).sum()) for v in group) for group in (self.slow, self.fast))
        print(f"final loss {losses[-1]:.4f} accuracy {np.mean((logits > 0) == (fails > 0.5)):.4f} "
              f"logits {np.abs(logits).mean():.4f} slow {slow:.4f} fast {fast:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rate", type=float, default=0.1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "simulated.keras")
        pretrain(file, arguments)
        Finetuning(file, arguments)()
