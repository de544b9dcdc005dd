"""Forecast of the next hours of a load curve."""
import argparse
from pathlib import Path

import keras
import tensorflow as tf

from series import load_curve, windows
from trainer import Trainer


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=0.12)
    parser.add_argument("--decay", type=float, default=0.85)
    parser.add_argument("--patience", type=int, default=2)
    parser.add_argument("--min-delta", type=float, default=0.15)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--folder", default=str(Path(__file__).resolve().parent / "state"))
    options = parser.parse_args()
    keras.utils.set_random_seed(options.seed)

    curve = load_curve(900, seed=options.seed)
    train = windows(curve[:600], stride=4)      # 143 windows, the last batch is smaller
    valid = windows(curve[600:], stride=7)
    trainer = Trainer(tf.distribute.MirroredStrategy(), options, train, valid)
    trainer.resume()
    last_error, last_sum = trainer.fit()
    best_sum = sum(w.sum() for w in trainer.model.get_weights())
    print(f"final: epochs {trainer.epoch} best error {trainer.validate():.5f} "
          f"last error {last_error:.5f} sums of weights {best_sum:.5f} {last_sum:.5f}")


if __name__ == "__main__":
    main()
