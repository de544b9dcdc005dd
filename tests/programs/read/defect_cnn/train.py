"""Trains the surface inspection network.

    python train.py [epochs=6] [base_rate=0.15] ...
"""
import logging
import sys

import keras
import tensorflow as tf

from settings import from_args
from surface_data import SheetPipeline
from trainer import Trainer


def main():
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    settings = from_args(sys.argv[1:])
    keras.utils.set_random_seed(settings.seed)
    settings.workdir.mkdir(parents=True, exist_ok=True)
    print("settings", settings.describe())
    strategy = tf.distribute.MirroredStrategy()
    print("replicas", strategy.num_replicas_in_sync)
    Trainer(settings, strategy, SheetPipeline(settings, strategy)).fit()


if __name__ == "__main__":
    main()
