"""Rolling-origin evaluation of the load forecast.

Every fold begins with the same weights and a fresh optimizer: both come from the checkpoint that is
written before the first fold.
"""
from dataclasses import dataclass
import logging
import os
import sys

import keras
import numpy as np
import tensorflow as tf

from model import Forecaster
from series import cut, hourly_load, rolling_folds
from trainer import Trainer

logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
log = logging.getLogger("forecast")
HERE = os.path.dirname(os.path.abspath(__file__))


@dataclass
class Config:
    hours: int = 330
    history: int = 24
    horizon: int = 6
    filters: int = 6
    folds: int = 3
    held: int = 37
    epochs: int = 2
    batch: int = 36
    rate: float = 0.02
    momentum: float = 0.9
    decay: float = 2e-2
    max_norm: float = 0.4
    seed: int = 17
    start: str = os.path.join(HERE, "start", "weights")


def prepare(cfg, strategy):
    os.makedirs(os.path.dirname(cfg.start), exist_ok=True)
    with strategy.scope():
        model = Forecaster(cfg.history, cfg.horizon, cfg.filters)
        optimizer = keras.optimizers.SGD(cfg.rate, momentum=cfg.momentum, nesterov=True)
        optimizer.build(model.trainable_variables)
        start = tf.train.Checkpoint(model=model, optimizer=optimizer)
        path = start.write(cfg.start)
    return model, optimizer, lambda: start.read(path).assert_consumed()


def main():
    cfg = Config()
    keras.utils.set_random_seed(cfg.seed)
    strategy = tf.distribute.MirroredStrategy()
    model, optimizer, back_to_start = prepare(cfg, strategy)
    trainer = Trainer(cfg, strategy, model, optimizer)
    windows = cut(hourly_load(cfg.hours, cfg.seed), cfg.history, cfg.horizon)

    scores, sizes = [], []
    for number, (train, held) in enumerate(rolling_folds(windows, cfg.folds, cfg.held)):
        log.info("fold %d: %d windows, %d held out", number, len(train), len(held))
        back_to_start()
        trainer.fit(train)
        scores.append(trainer.mean_absolute_error(held))
        sizes.append(sum(float(np.abs(w).sum()) for w in model.get_weights()))
        log.info("fold %d: error %.5f", number, scores[-1])
    log.info("final: error %.6f spread %.6f weights %.6f last %.6f", np.mean(scores), np.ptp(scores), np.mean(sizes), sizes[-1])


if __name__ == "__main__":
    main()
