"""Tags names: first on the newspaper, where a stopped run goes on, and then a few epochs on letters."""
import argparse

import keras
import numpy as np
import tensorflow as tf

from tagger.callbacks import Lines, WarmUp
from tagger.data import LONGEST, TAGS, WORDS, batches, corpus
from tagger.layers import Highway, TagAccuracy


def make_model(width=16):
    draw = lambda seed: keras.initializers.GlorotUniform(seed=seed)  # noqa: E731
    words = keras.Input((LONGEST,), dtype="int32")
    x = keras.layers.Embedding(WORDS, width, keras.initializers.RandomNormal(0, 0.5, seed=1))(words)
    x = keras.layers.Conv1D(width, 2, padding="causal", activation="relu", kernel_initializer=draw(2))(x)
    x = Highway(width, seed=3)(x)
    return keras.Model(words, keras.layers.Dense(TAGS, kernel_initializer=draw(4))(x))


def compile_with(model, rate):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
    model.compile(keras.optimizers.SGD(rate, momentum=0.9), loss=loss, metrics=[TagAccuracy()])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--letters", type=int, default=4, help="epochs on the letters")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=0.4)
    args = parser.parse_args()

    news, letters, test = corpus(192, 1), corpus(96, 2), corpus(96, 3)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = make_model()
        compile_with(model, args.rate)
    model.fit(
        batches(news, args.batch), epochs=args.epochs, verbose=0,
        callbacks=[WarmUp(args.rate, 3), Lines("news"), keras.callbacks.BackupAndRestore("backup")])
    model.save("news.keras")

    with strategy.scope():
        tuned = keras.models.load_model("news.keras", compile=False)
        compile_with(tuned, args.rate / 4)
    tuned.fit(batches(letters, args.batch), epochs=args.letters, verbose=0, callbacks=[Lines("letters")])

    loss, right = tuned.evaluate(batches(test, args.batch), verbose=0)
    size = sum(float(np.abs(w.numpy()).sum()) for w in tuned.weights)
    print(f"test loss {loss:.6f} words right {right:.4f} weights {size:.4f}")


if __name__ == "__main__":
    main()
