"""Trains the topic classifier:  python -m newswire.train [--epochs N] [--workdir DIR]"""
import argparse
import dataclasses
from pathlib import Path

import keras
import tensorflow as tf

from .config import Config
from .data import Corpus
from .model import TopicClassifier
from .state import EpochPrinter, TrainingState


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=Config.epochs)
    parser.add_argument("--batch-size", type=int, default=Config.batch_size)
    parser.add_argument("--workdir", type=Path, default=Config.workdir)
    return parser.parse_args()


def build(config, strategy):
    with strategy.scope():
        model = TopicClassifier(config)
        optimizer = keras.optimizers.SGD(config.optim.learning_rate, momentum=config.optim.momentum)
        model.compile(optimizer=optimizer)
        model(tf.zeros((1, config.data.max_len), tf.int32))
        optimizer.build(model.trainable_variables)
    return model, optimizer


def main():
    args = parse_arguments()
    config = dataclasses.replace(
        Config(), epochs=args.epochs, batch_size=args.batch_size, workdir=args.workdir)
    keras.utils.set_random_seed(config.seed)
    strategy = tf.distribute.MirroredStrategy()
    corpus = Corpus(config.data)
    model, optimizer = build(config, strategy)

    state = TrainingState(model, optimizer, config.workdir / "checkpoints", config.optim)
    first_epoch = state.resume()
    dev = corpus.dev_batches(config.batch_size)
    model.fit(
        corpus.train_stream(config.batch_size, first_epoch, config.epochs),
        initial_epoch=first_epoch,
        epochs=config.epochs,
        steps_per_epoch=config.steps_per_epoch,
        validation_data=dev,
        callbacks=[state, EpochPrinter()],
        verbose=0,
    )
    scores = model.evaluate(dev, verbose=0, return_dict=True)
    size = sum(float(tf.reduce_sum(tf.abs(v.value))) for v in model.trainable_variables)
    print(f"final: loss {scores['loss']:.5f} recall {scores['macro_recall']:.5f} "
          f"smoothed {float(state.smoothed):.5f} weights {size:.5f}")


if __name__ == "__main__":
    main()
