"""python -m towers.train --epochs 4"""
import argparse
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from .data import HISTORY, Interactions
from .evaluate import make_evaluator
from .model import TwoTower, in_batch_softmax


@dataclass(frozen=True)
class Settings:
    epochs: int = 4
    global_batch: int = 64
    learning_rate: float = 0.01
    temperature: float = 0.2
    top: int = 10
    seed: int = 11


def train(settings: Settings):
    source = Interactions()
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = TwoTower(source.articles, source.topic_of, source.topics)
        model((tf.zeros((1, HISTORY), tf.int32), tf.zeros((1,), tf.int32)))
        optimizer = keras.optimizers.Adagrad(settings.learning_rate * 5)
        optimizer.build(model.trainable_variables)
    log_frequency = tf.constant(source.log_frequency)

    def replica_step(history, ids):
        with tf.GradientTape() as tape:
            users, items = model((history, ids))
            each = in_batch_softmax(users, items, ids, log_frequency, settings.temperature)
            loss = tf.nn.compute_average_loss(each, global_batch_size=settings.global_batch)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    @tf.function
    def train_step(history, ids):
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(replica_step, args=(history, ids)), axis=None)

    evaluate = make_evaluator(strategy, model, source.articles, settings.top)
    batches = iter(strategy.distribute_datasets_from_function(source.training(settings.global_batch, settings.seed)))
    steps = len(source.train[1]) // settings.global_batch
    for epoch in range(settings.epochs):
        losses = [float(train_step(*next(batches))) for _ in range(steps)]
        recall, score = evaluate(source.testing(settings.global_batch))
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f} recall@{settings.top} {recall:.4f} score {score:.4f}")
    weights = sum(float(tf.reduce_sum(tf.abs(w))) for w in model.trainable_variables)
    return losses[-1], score, weights


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=Settings.epochs)
    parser.add_argument("--global_batch", type=int, default=Settings.global_batch)
    parser.add_argument("--learning_rate", type=float, default=Settings.learning_rate)
    loss, score, weights = train(Settings(**vars(parser.parse_args())))
    print(f"final loss {loss:.6f} score {score:.6f} weights {weights:.5f}")


if __name__ == "__main__":
    main()
