"""python -m demand.train --epochs 6 --loss stock"""
import argparse
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from .data import Sampler, fixed, sales, windows
from .model import forecaster
from .objectives import LOSSES, ShareOfDemand
from .progress import PATTERN, SlowDown, load_newest


def arguments():
    parser = argparse.ArgumentParser(description="Trains the demand forecaster.")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=40)
    parser.add_argument("--rate", type=float, default=0.15)
    parser.add_argument("--loss", choices=sorted(LOSSES), default="stock")
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--folder", type=Path, default=Path(__file__).resolve().parents[1] / "progress")
    return parser.parse_args()


def main():
    args = arguments()
    args.folder.mkdir(parents=True, exist_ok=True)
    keras.utils.set_random_seed(args.seed)
    table = sales(150, args.seed)
    train = Sampler(windows(table[:, :110], stride=3), args.batch, args.seed)
    check = fixed(windows(table[:, 100:], stride=3), args.batch)

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = forecaster()
        model.compile(optimizer=keras.optimizers.SGD(args.rate, momentum=0.8),
                      loss=LOSSES[args.loss], metrics=[ShareOfDemand()])
        model.optimizer.build(model.trainable_variables)

    slow_down = SlowDown(args.folder)
    first_epoch = load_newest(model, args.folder)
    slow_down.resume(first_epoch)
    save = keras.callbacks.ModelCheckpoint(str(args.folder / PATTERN), save_weights_only=True)
    for epoch in range(first_epoch, args.epochs):
        history = model.fit(
            train(epoch), initial_epoch=epoch, epochs=epoch + 1, validation_data=check,
            shuffle=False, verbose=0, callbacks=[slow_down, save])
        rate = float(model.optimizer.learning_rate.numpy())
        print(f"epoch {epoch + 1}: " + " ".join(
            f"{name} {values[-1]:.4f}" for name, values in history.history.items()) + f" rate {rate:.4f}")

    scores = model.evaluate(check, verbose=0, return_dict=True)
    weights = sum(np.abs(w).sum() for w in model.get_weights())
    print(f"final: loss {scores['loss']:.5f} wape {scores['wape']:.5f} weights {weights:.5f}")


if __name__ == "__main__":
    main()
