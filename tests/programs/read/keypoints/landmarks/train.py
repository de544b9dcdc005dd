import argparse
from dataclasses import replace

import keras
import tensorflow as tf

from .coach import Coach
from .settings import Settings


def main():
    parser = argparse.ArgumentParser(prog="landmarks.train")
    parser.add_argument("--epochs", type=int, default=Settings.epochs)
    parser.add_argument("--rate", type=float, default=Settings.rate)
    given = parser.parse_args()
    settings = replace(Settings(), epochs=given.epochs, rate=given.rate)
    keras.utils.set_random_seed(settings.seed)
    coach = Coach(settings, tf.distribute.MirroredStrategy())
    loss = coach.train()
    last = coach.held_out_error()
    heat = float(coach.records.heat)
    print(f"final loss {loss:.6f} error {last:.6f} best {coach.best_error():.6f} heat {heat:.6f}")


if __name__ == "__main__":
    main()
