#!/usr/bin/env python
"""A small denoising diffusion model (Ho et al., 2020) of points on a spiral.

    python ddpm.py --epochs 6 --run runs/spiral

Stop it whenever you like: it goes on with the epoch that was not finished.
"""
import argparse
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf


def spiral(rows, seed):
    rng = np.random.default_rng(seed)
    angle = 3 * np.pi * np.sqrt(rng.uniform(size=rows))
    points = np.stack([angle * np.cos(angle), angle * np.sin(angle)], 1) / (3 * np.pi)
    return np.float32(points + 0.02 * rng.normal(size=(rows, 2)))


def alpha_bars(levels):
    """The cosine schedule of Nichol and Dhariwal."""
    t = np.linspace(0, 1, levels + 1)
    bars = np.cos((t + 0.008) / 1.008 * np.pi / 2) ** 2
    return np.float32(np.clip(bars[1:] / bars[0], 1e-4, 0.9999))


def make_denoiser(width, levels):
    noisy = keras.Input((2,), name="noisy")
    level = keras.Input((), dtype="int32", name="level")
    time = keras.layers.Embedding(levels, 8)(level)
    h = keras.layers.Concatenate()([noisy, time])
    for _ in range(2):
        h = keras.layers.Dense(width, activation="swish")(h)
    return keras.Model([noisy, level], keras.layers.Dense(2)(h))


def corrupted(points, bars, rng):
    """Each point in a random order, at a random level, with the noise that has to be found."""
    points = points[rng.permutation(len(points))]
    level = rng.integers(0, len(bars), len(points)).astype("int32")
    noise = rng.normal(size=points.shape).astype("float32")
    keep = bars[level][:, None]
    return np.sqrt(keep) * points + np.sqrt(1 - keep) * noise, level, noise


def read_state(path):
    if os.path.exists(path):
        with open(path) as file:
            return json.load(file)
    return None


def write_state(path, **state):
    with open(path + ".new", "w") as file:
        json.dump(state, file)
    os.replace(path + ".new", path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--points", type=int, default=256)
    parser.add_argument("--levels", type=int, default=20)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--run", default="spiral_run")
    args = parser.parse_args()

    keras.utils.set_random_seed(args.seed)
    os.makedirs(args.run, exist_ok=True)
    bars = alpha_bars(args.levels)
    points = spiral(args.points, args.seed)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        denoiser = make_denoiser(args.width, args.levels)
        optimizer = keras.optimizers.Adam(args.rate)
        optimizer.build(denoiser.trainable_variables)
    checkpoint = tf.train.Checkpoint(denoiser=denoiser, optimizer=optimizer)

    def distributed(arrays):
        def pipeline(context):
            per_replica = context.get_per_replica_batch_size(args.batch)
            return tf.data.Dataset.from_tensor_slices(arrays).batch(per_replica, drop_remainder=True)

        return strategy.distribute_datasets_from_function(pipeline)

    def squared_errors(noisy, level, noise):
        return tf.reduce_mean(tf.square(denoiser([noisy, level]) - noise), axis=-1)

    def learn(noisy, level, noise):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(squared_errors(noisy, level, noise), global_batch_size=args.batch)
        gradients = tape.gradient(loss, denoiser.trainable_variables)
        optimizer.apply_gradients(zip(gradients, denoiser.trainable_variables))
        return loss

    @tf.function
    def train_step(batch):
        return strategy.reduce("SUM", strategy.run(learn, args=batch), axis=None)

    @tf.function
    def test_step(batch):
        return strategy.reduce("MEAN", strategy.run(squared_errors, args=batch), axis=0)

    rng = np.random.default_rng(args.seed + 1)
    first, state_file = 0, os.path.join(args.run, "state.json")
    state = read_state(state_file)
    if state:
        checkpoint.read(os.path.join(args.run, state["weights"])).assert_consumed()
        first = state["epoch"]
        rng.bit_generator.state = state["rng"]
        print(f"going on after epoch {first}")

    for epoch in range(first, args.epochs):
        losses = [float(train_step(batch)) for batch in distributed(corrupted(points, bars, rng))]
        print(f"epoch {epoch + 1} loss {np.mean(losses):.4f}")
        path = checkpoint.write(os.path.join(args.run, f"epoch-{epoch + 1}"))
        write_state(state_file, epoch=epoch + 1, weights=os.path.basename(path), rng=rng.bit_generator.state)

    held_out = corrupted(spiral(128, args.seed + 100), bars, np.random.default_rng(0))
    errors = [float(test_step(batch)) for batch in distributed(held_out)]
    size = sum(float(np.abs(weight).sum()) for weight in denoiser.get_weights())
    print(f"test error {np.mean(errors):.5f} weights {size:.4f}")


if __name__ == "__main__":
    main()
