"""Trains the duplicate finder and reports loss and F1 on held-out pairs."""
import argparse

import keras
import numpy as np
import tensorflow as tf

from matcher import F1, Matcher, Warmup
from pairs import LENGTH, question_pairs

METRICS = {"f1": F1}


def feed(count, seed, batch, shuffle=False):
    data = tf.data.Dataset.from_tensor_slices(question_pairs(count, seed))
    if shuffle:
        data = data.shuffle(count, seed=4)
    return data.batch(batch, drop_remainder=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--dim", type=int, default=12)
    parser.add_argument("--metric", default="f1", choices=["f1"])
    args = parser.parse_args()
    keras.utils.set_random_seed(31)

    strategy = tf.distribute.MirroredStrategy()
    batch = args.batch
    with strategy.scope():
        warmup = Warmup(20)
        matcher = Matcher(args.dim, warmup)
        matcher({"a": tf.zeros((1, LENGTH), tf.int32), "b": tf.zeros((1, LENGTH), tf.int32)})
        matcher.compile(optimizer=keras.optimizers.Adam(0.02), metrics=[METRICS[args.metric]()])

    history = matcher.fit(feed(192, 1, batch, shuffle=True), epochs=args.epochs, verbose=0)
    for epoch, loss in enumerate(history.history["loss"]):
        print(f"epoch {epoch} loss {loss:.5f} {args.metric} {history.history[args.metric][epoch]:.5f}")

    held = matcher.evaluate(feed(96, 2, batch), return_dict=True, verbose=0)
    norm = sum(float(np.abs(w).sum()) for w in matcher.get_weights())
    print(f"final: loss {held['loss']:.6f} f1 {held[args.metric]:.6f} weights {norm:.6f}")


if __name__ == "__main__":
    main()
