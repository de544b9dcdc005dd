import argparse
from dataclasses import replace

import keras
import tensorflow as tf

from .clouds import clouds
from .config import Config
from .trainer import Trainer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=Config.epochs)
    parser.add_argument("--gather", type=int, default=Config.gather)
    parser.add_argument("--one-device", action="store_true")
    args = parser.parse_args()
    cfg = replace(Config(), epochs=args.epochs, gather=args.gather)

    keras.utils.set_random_seed(cfg.seed)
    strategy = tf.distribute.get_strategy() if args.one_device else tf.distribute.MirroredStrategy()
    trainer = Trainer(cfg, strategy)
    trainer.train(clouds(cfg, cfg.clouds, seed=1))
    loss, right = trainer.score(clouds(cfg, 120, seed=2))
    print(f"after {int(trainer.step)} batches: training {float(trainer.loss):.5f} test {loss:.5f} right {right:.4f}")


if __name__ == "__main__":
    main()
