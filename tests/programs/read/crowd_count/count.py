"""Learns to count people in aerial pictures.

    python count.py [--epochs 5] [--batch 16]
"""
import argparse

import numpy as np
import tensorflow as tf
import keras

import data
from losses import make_loss
from model import Counter


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--batch", type=int, default=16, help="pictures in a step, over all devices")
    p.add_argument("--rate", type=float, default=0.02)
    p.add_argument("--seed", type=int, default=8)
    return p.parse_args()


def make_steps(strategy, model, optimizer, loss_of):
    def learn(picture, density):
        with tf.GradientTape() as tape:
            loss = loss_of(density, model(picture, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    def judge(picture, density):
        error = tf.reduce_sum(model(picture, training=False) - density, axis=(1, 2, 3))
        return tf.reduce_sum(tf.abs(error)), tf.reduce_sum(tf.square(error)), tf.cast(tf.shape(error)[0], tf.float32)

    @tf.function
    def train_step(picture, density):
        return strategy.reduce("SUM", strategy.run(learn, args=(picture, density)), axis=None)

    @tf.function
    def test_step(picture, density):
        return [strategy.reduce("SUM", v, axis=None) for v in strategy.run(judge, args=(picture, density))]

    return train_step, test_step


def evaluate(batches, test_step):
    absolute = squared = pictures = 0.0
    for picture, density in batches:
        a, s, n = test_step(picture, density)
        absolute, squared, pictures = absolute + float(a), squared + float(s), pictures + float(n)
    return absolute / pictures, (squared / pictures) ** 0.5


def main():
    opt = options()
    keras.utils.set_random_seed(opt.seed)
    strategy = tf.distribute.MirroredStrategy()
    train, test = data.draw(96, opt.seed), data.draw(43, opt.seed + 1)
    with strategy.scope():
        model = Counter()
        model(train[0][:1])
        optimizer = keras.optimizers.SGD(opt.rate, momentum=0.8)
        optimizer.build(model.trainable_variables)
    train_step, test_step = make_steps(strategy, model, optimizer, make_loss(opt.batch))
    loss = mae = rmse = 0.0
    for epoch in range(opt.epochs):
        losses = [float(train_step(p, d)) for p, d in data.batches(strategy, train, opt.batch, epoch)]
        loss = float(np.mean(losses))
        mae, rmse = evaluate(data.batches(strategy, test, opt.batch), test_step)
        print(f"[{epoch + 1}/{opt.epochs}] loss {loss:.4f}  mae {mae:.3f}  rmse {rmse:.3f}")
    size = float(sum(np.square(w).sum() for w in model.get_weights()))
    print(f"result loss={loss:.6f} mae={mae:.6f} rmse={rmse:.6f} weights={size:.6f}")


if __name__ == "__main__":
    main()
