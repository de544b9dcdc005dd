"""Clay from soil spectra, judged by leaving out one farm after the other."""
from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf


@dataclass
class Samples:
    spectra: np.ndarray
    clay: np.ndarray
    weight: np.ndarray
    farm: np.ndarray

    def __getitem__(self, rows) -> Samples:
        return Samples(self.spectra[rows], self.clay[rows], self.weight[rows], self.farm[rows])

    def __len__(self) -> int:
        return len(self.clay)

    def batches(self, size: int) -> tf.data.Dataset:
        return tf.data.Dataset.from_tensor_slices((self.spectra, self.clay, self.weight)).batch(size)


def collect(farms: int, per_farm: int, seed: int) -> Samples:
    rng = np.random.default_rng(seed)
    farm = np.repeat(np.arange(farms), per_farm)
    clay = rng.beta(2, 4, farms * per_farm)
    wet = rng.uniform(0, 1, farms)[farm] + rng.normal(0, 0.1, len(farm))
    bands = np.linspace(0, 1, 20)
    spectra = (np.outer(clay, np.sin(5 * bands)) + np.outer(clay**2, np.cos(9 * bands)) - np.outer(wet, 0.4 * bands)
               + rng.normal(0, 0.03, (len(farm), 20)))
    weight = rng.choice([0.5, 1.0, 2.0], len(farm))  # how often the laboratory has repeated the measurement
    order = rng.permutation(len(farm))
    return Samples(np.float32(spectra), np.float32(clay), np.float32(weight), farm)[order]


def leave_one_farm_out(samples: Samples) -> Iterator[tuple[int, Samples, Samples]]:
    for farm in np.unique(samples.farm):
        yield int(farm), samples[samples.farm != farm], samples[samples.farm == farm]


class Calibration:
    """Trains one network after the other with the same settings."""

    def __init__(self, strategy: tf.distribute.Strategy, args: argparse.Namespace):
        self.strategy, self.args = strategy, args

    def start(self, inputs: int) -> None:
        with self.strategy.scope():
            self.network = keras.Sequential([
                keras.Input((inputs,)),
                keras.layers.Dense(self.args.units, activation="tanh"),
                keras.layers.Dense(1),
            ])
            self.optimizer = keras.optimizers.SGD(self.args.rate, momentum=0.9, nesterov=True)
            self.optimizer.build(self.network.trainable_variables)
        self.step = tf.function(self.distributed_step)

    def replica_step(self, spectra, clay, weight):
        with tf.GradientTape() as tape:
            error = tf.squeeze(self.network(spectra, training=True), -1) - clay
            losses = weight * tf.square(error)
            loss = tf.nn.compute_average_loss(losses, global_batch_size=self.args.batch)
        gradients = tape.gradient(loss, self.network.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.network.trainable_variables))
        return loss

    def distributed_step(self, spectra, clay, weight):
        return self.strategy.reduce("SUM", self.strategy.run(self.replica_step, args=(spectra, clay, weight)), axis=None)

    def fit(self, samples: Samples) -> float:
        self.start(samples.spectra.shape[1])
        data = self.strategy.experimental_distribute_dataset(samples.batches(self.args.batch))
        for _ in range(self.args.epochs):
            losses = [float(self.step(*batch)) for batch in data]
        return float(np.mean(losses))

    def score(self, samples: Samples) -> float:
        predicted = self.network(samples.spectra, training=False).numpy()[:, 0]
        return float(np.sqrt(np.average((predicted - samples.clay) ** 2, weights=samples.weight)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--farms", type=int, default=4)
    parser.add_argument("--per-farm", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--units", type=int, default=16)
    parser.add_argument("--rate", type=float, default=0.04)
    args = parser.parse_args()
    keras.utils.set_random_seed(2)
    samples = collect(args.farms, args.per_farm, seed=13)
    calibration = Calibration(tf.distribute.MirroredStrategy(), args)
    errors = []
    for farm, rest, left_out in leave_one_farm_out(samples):
        loss = calibration.fit(rest)
        errors.append(calibration.score(left_out))
        print(f"without farm {farm}: loss {loss:.5f}, its error {errors[-1]:.5f}")
    print("errors " + " ".join(f"{error:.5f}" for error in errors) + f" mean {np.mean(errors):.5f} last loss {loss:.6f}")


if __name__ == "__main__":
    main()
