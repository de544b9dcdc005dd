"""Jobs of the nightly run.

    python -m claims.jobs          trains, then evaluates what was kept, as the two jobs do one after the other
    python -m claims.jobs train
    python -m claims.jobs evaluate
"""
import argparse
import dataclasses
import json
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from .data import dataset
from .network import make


@dataclasses.dataclass
class JobConfig:
    folder: str = "nightly"
    width: int = 16
    depth: int = 2
    batch: int = 32
    claims: int = 640
    unseen: int = 192
    epochs: int = 6
    rate: float = 0.01


def train(config):
    keras.utils.set_random_seed(6)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        network = make(config)
        network.compile(
            keras.optimizers.Adam(config.rate),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
    data = dataset(config.claims, 1, config.batch).shuffle(20, seed=4)
    history = network.fit(data, epochs=config.epochs, verbose=0).history
    for epoch, (loss, accuracy) in enumerate(zip(history["loss"], history["accuracy"]), 1):
        print(f"epoch {epoch}: loss {loss:.5f} accuracy {accuracy:.4f}")
    folder = Path(config.folder)
    folder.mkdir(exist_ok=True)
    tf.train.Checkpoint(network=network).write(str(folder / "network"))
    report = {"loss": history["loss"][-1], "factor": float(network.sharpen.factor.numpy())}
    (folder / "report.json").write_text(json.dumps(report))
    (folder / "config.json").write_text(json.dumps(dataclasses.asdict(config)))


def evaluate(folder):
    """A job of its own: it knows the folder only."""
    config = JobConfig(**json.loads((Path(folder) / "config.json").read_text()))
    report = json.loads((Path(folder) / "report.json").read_text())
    network = make(config)
    status = tf.train.Checkpoint(network=network).read(str(Path(folder) / "network"))
    status.assert_existing_objects_matched().expect_partial()

    def score():
        logits, labels = [], []
        for inputs, label in dataset(config.unseen, 2, 64):
            logits.append(network(inputs, training=False).numpy())
            labels.append(label.numpy())
        logits, labels = np.float64(np.concatenate(logits)), np.concatenate(labels)
        likely = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        return -likely[np.arange(len(labels)), labels].mean(), (logits.argmax(-1) == labels).mean()

    nll, accuracy = score()
    for block in network.blocks:
        for layer in block.layers:
            layer.quantize("int8")
    small_nll, small_accuracy = score()
    print(f"trained to {report['loss']:.5f} factor {report['factor']:.4f}; unseen: nll {nll:.5f} accuracy {accuracy:.4f};"
          f" as int8: nll {small_nll:.4f} accuracy {small_accuracy:.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("job", nargs="?", choices=("train", "evaluate", "all"), default="all")
    parser.add_argument("--folder", default="nightly")
    args = parser.parse_args()
    if args.job in ("train", "all"):
        train(JobConfig(folder=args.folder))
    if args.job in ("evaluate", "all"):
        evaluate(args.folder)


if __name__ == "__main__":
    main()
