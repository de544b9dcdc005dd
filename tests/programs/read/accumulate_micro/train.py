"""Large batches out of small ones: gradients of --window micro batches are summed before each update.

The state is saved every --save-every micro batches, also in the middle of a window.
"""
import argparse
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from accumulation import GradientSums, on_replicas

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--micro-steps", type=int, default=28)
parser.add_argument("--micro-batch", type=int, default=16)
parser.add_argument("--window", type=int, default=4)
parser.add_argument("--save-every", type=int, default=5)
parser.add_argument("--rate", type=float, default=0.15)
parser.add_argument("--output", type=Path, default=Path(__file__).resolve().parent / "output")


def spectra(rows=224, channels=20, seed=14):
    """Noisy spectra with one of four peaks, and the position of a second one."""
    rng = np.random.default_rng(seed)
    grid = np.arange(channels)
    label = rng.integers(0, 4, rows)
    centre = rng.uniform(2, channels - 3, rows)
    x = np.exp(-0.5 * (grid[None] - (3 + 4 * label)[:, None]) ** 2) + 0.7 * np.exp(-0.1 * (grid[None] - centre[:, None]) ** 2)
    x += 0.25 * rng.normal(size=x.shape)
    return x.astype("float32"), label.astype("int32")


class PeakNet(keras.Model):
    def __init__(self, channels, classes):
        super().__init__()
        glorot = keras.initializers.GlorotUniform
        self.hidden = keras.layers.Dense(24, activation="relu", kernel_initializer=glorot(seed=1))
        self.classify = keras.layers.Dense(classes, kernel_initializer=glorot(seed=2))
        self.reconstruct = keras.layers.Dense(channels, kernel_initializer=glorot(seed=3))

    def call(self, x):
        return self.classify(self.hidden(x))

    def decode(self, x):
        return self.reconstruct(self.hidden(x))


def micro_batch(x, y, step, size):
    """Number `step` of an endless row of micro batches; every pass has its own order."""
    per_pass = len(x) // size
    order = np.random.default_rng([5, step // per_pass]).permutation(len(x))
    rows = order[(step % per_pass) * size:][:size]
    return tf.data.Dataset.from_tensors((x[rows], y[rows])).unbatch().batch(size)


def main():
    args = parser.parse_args()
    x, y = spectra()
    strategy = tf.distribute.MirroredStrategy()
    global_batch = args.micro_batch * args.window

    with strategy.scope():
        model = PeakNet(x.shape[1], 4)
        model(x[:1])
        model.decode(x[:1])
        optimizer = keras.optimizers.SGD(args.rate, momentum=0.9)
        optimizer.build(model.trainable_variables)
        sums = GradientSums(model.trainable_variables)
        step = tf.Variable(0, dtype=tf.int64, trainable=False)
        smooth = tf.Variable(0.0, trainable=False)

    @on_replicas(strategy, reduce="SUM")
    def micro_step(bx, by):
        with tf.GradientTape() as tape:
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(by, model(bx))
            loss = tf.reduce_sum(each) / global_batch
        sources = [v.value for v in model.trainable_variables]
        gradients = tape.gradient(loss, sources, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        sums.add(gradients)
        return loss

    @on_replicas(strategy)
    def update():
        optimizer.apply_gradients(zip(sums.take(), model.trainable_variables))

    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, sums=sums, step=step, smooth=smooth)
    manager = tf.train.CheckpointManager(checkpoint, str(args.output), max_to_keep=3)
    checkpoint.restore(manager.latest_checkpoint)
    if manager.latest_checkpoint:
        print(f"micro batch {int(step.numpy())} of {args.micro_steps}")

    for number in range(int(step.numpy()), args.micro_steps):
        data = micro_batch(x, y, number, args.micro_batch)
        for batch in strategy.experimental_distribute_dataset(data):
            loss = float(micro_step(*batch)) * args.window
        smooth.assign(0.8 * smooth + 0.2 * loss)
        if (number + 1) % args.window == 0:
            update()
            print(f"update {(number + 1) // args.window}: loss {loss:.5f} smooth {float(smooth.numpy()):.5f}")
        step.assign(number + 1)
        if (number + 1) % args.save_every == 0:
            manager.save(checkpoint_number=number + 1)

    logits = model(x).numpy()
    wrong = float(np.mean(logits.argmax(1) != y))
    weights = sum(float(np.abs(w).sum()) for w in model.get_weights())
    print(f"end: smooth {float(smooth.numpy()):.6f} wrong {wrong:.6f} spread {logits.std():.6f} weights {weights:.5f}")


if __name__ == "__main__":
    main()
