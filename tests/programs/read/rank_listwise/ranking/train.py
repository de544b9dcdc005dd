"""python -m ranking.train: trains the scorer and reports on queries it has not seen."""
import argparse
import json
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from . import losses, metrics
from .corpus import Corpus
from .scorer import Scorer

ROOT = Path(__file__).resolve().parent.parent


class History(keras.callbacks.Callback):
    """One line for each epoch, on the screen and in a file."""

    def __init__(self, path, held):
        super().__init__()
        self.path, self.held = path, held
        path.write_text("")

    def on_epoch_end(self, epoch, logs=None):
        row = {k: round(float(v), 5) for k, v in self.model.evaluate(self.held, verbose=0, return_dict=True).items()}
        print(f"epoch {epoch + 1}: " + " ".join(f"{k} {v:.5f}" for k, v in sorted(row.items())), flush=True)
        with self.path.open("a") as file:
            file.write(json.dumps({"epoch": epoch + 1, **row}) + "\n")


def decay(epoch, rate):
    return rate if epoch < 2 else rate * 0.7


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--loss", choices=sorted(losses.LOSSES), default="mixed")
    parser.add_argument("--queries", type=int, default=256)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rate", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=17)
    args = parser.parse_args()

    keras.utils.set_random_seed(args.seed)
    train = Corpus(args.queries, args.seed).dataset(args.batch, seed=args.seed, repeat=True)
    held = Corpus(64, args.seed + 1).dataset(args.batch)

    strategy = tf.distribute.MirroredStrategy()
    print("replicas:", strategy.num_replicas_in_sync)
    with strategy.scope():
        model = Scorer(Corpus.vocabulary)
        model(next(iter(held))[0])      # creates the weights
        model.compile(optimizer=keras.optimizers.SGD(args.rate, momentum=0.8),
                      loss=losses.LOSSES[args.loss], metrics=metrics.standard())
        model.optimizer.build(model.trainable_variables)
    model.fit(train, epochs=args.epochs, steps_per_epoch=args.queries // args.batch, verbose=0,
              callbacks=[keras.callbacks.LearningRateScheduler(decay), History(ROOT / "history.jsonl", held)])

    report = model.evaluate(held, verbose=0, return_dict=True)
    size = sum(float(np.abs(w).sum()) for w in model.get_weights())
    print("final: " + " ".join(f"{k} {float(v):.5f}" for k, v in sorted(report.items())) + f" weights {size:.5f}")


if __name__ == "__main__":
    main()
