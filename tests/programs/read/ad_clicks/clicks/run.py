"""python -m clicks.run --days 4"""
import argparse

import keras
import numpy as np
import tensorflow as tf

from . import log
from .model import ClickModel

HOURS = 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--days", type=int, default=4)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=1.0)
    options = parser.parse_args()

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = ClickModel()
        model.compile(keras.optimizers.SGD(options.rate, momentum=0.5))
    told = keras.callbacks.LambdaCallback(on_epoch_end=lambda day, logs: print(
        f"day {day + 1}: loss {logs['loss']:.4f} auc {logs['auc']:.4f}"))
    train = log.dataset(2 * HOURS, options.batch)
    history = model.fit(train.repeat(), steps_per_epoch=HOURS, epochs=options.days, verbose=0, callbacks=[told])
    later = model.evaluate(log.dataset(HOURS, options.batch, first=100), return_dict=True, verbose=0)
    factors = sum(float(np.abs(each).sum()) for each in model.get_weights()[:2])
    print(f"later hours: loss {later['loss']:.4f} auc {later['auc']:.4f}; "
          f"last day {history.history['loss'][-1]:.4f}, factors {factors:.3f}")


if __name__ == "__main__":
    main()
