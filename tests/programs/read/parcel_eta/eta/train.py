"""Trains the model of delivery times: python -m eta.train [config.toml]

The job may be stopped at any time; started again, it goes on with the next epoch.
"""
import sys

import keras
import numpy as np
import tensorflow as tf

from .callbacks import Report, best_so_far
from .config import Config
from .data import batches, parcels
from .model import Pinball, build

BEST = "eta_best.keras"


def main(path="config.toml"):
    config = Config.read(path)
    table, hours = parcels(config.rows, config.seed)
    strategy = tf.distribute.MirroredStrategy()
    train = batches(table, hours, config.batch)
    validation = batches(*parcels(config.validation_rows, config.seed + 1), config.batch)

    with strategy.scope():
        model = build(config, table)
        model.compile(
            keras.optimizers.SGD(config.rate, momentum=0.9, nesterov=True),
            loss=Pinball(config.quantile),
            metrics=[keras.metrics.RootMeanSquaredError(name="rmse")],
        )
        threshold = best_so_far(BEST, validation)

    model.fit(
        train,
        epochs=config.epochs,
        validation_data=validation,
        verbose=0,
        callbacks=[
            keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * config.decay),
            Report(),
            keras.callbacks.ModelCheckpoint(BEST, save_best_only=True, initial_value_threshold=threshold),
            keras.callbacks.BackupAndRestore("eta_backup", delete_checkpoint=False),
        ],
    )

    with strategy.scope():
        best = keras.models.load_model(BEST)
    scores = best.evaluate(validation, verbose=0, return_dict=True)
    size = sum(float(np.abs(weight).sum()) for weight in model.get_weights())
    print(
        f"best model: pinball {scores['loss']:.4f}, rmse {scores['rmse']:.4f} hours; "
        f"last weights {size:.3f}, rate {float(model.optimizer.learning_rate.numpy()):.5f}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
