"""Tags the words of synthetic orders ("two large pizzas with olives") with their roles.

Embedding, bidirectional LSTM and a dense layer, trained with `fit`. A run that was stopped goes on with the next
epoch; early stopping and the choice of the best weights go on, too.

    python tagger.py --epochs 7 --folder state
"""
import argparse
import json
import os
import time

import numpy as np
import tensorflow as tf
import keras
from keras import layers

TAGS = ["other", "amount", "size", "dish", "extra"]
WORDS = {
    "other": ["please", "with", "and", "a", "for", "me"],
    "amount": ["one", "two", "three", "few"],
    "size": ["small", "large", "double"],
    "dish": ["pizza", "soup", "salad", "pasta", "double"],
    "extra": ["olives", "cheese", "few", "salad", "basil"],
}
VOCABULARY = {word: i + 1 for i, word in enumerate(sorted({w for words in WORDS.values() for w in words}))}
LENGTH = 10

METRICS = {}


def metric(name):
    """Registers a metric under a name; it gets one value for each order."""
    def register(function):
        METRICS[name] = function
        return function
    return register


# ------------------------------------------------------------------------------------------------- orders

def orders(count, seed):
    rng = np.random.default_rng(seed)
    words = np.zeros((count, LENGTH), "int32")
    tags = np.zeros((count, LENGTH), "int32")
    for i in range(count):
        sentence = []
        while len(sentence) < rng.integers(3, LENGTH - 3):
            if rng.uniform() < 0.4:
                sentence.append("other")
            sentence += ["amount", "size", "dish"] if rng.uniform() < 0.6 else ["dish", "other", "extra"]
        for j, tag in enumerate(sentence[:LENGTH]):
            words[i, j] = VOCABULARY[rng.choice(WORDS[tag])]
            tags[i, j] = TAGS.index(tag)
    return words, tags


def training_data(arrays, batch, first_epoch, epochs, seed):
    """All epochs that are left, one after the other; the order of an epoch follows from its number."""
    one = tf.data.Dataset.from_tensor_slices(arrays)

    def shuffled(epoch):
        return one.shuffle(len(arrays[0]), seed=seed + epoch, reshuffle_each_iteration=False)

    return tf.data.Dataset.range(first_epoch, epochs).flat_map(shuffled).batch(batch, drop_remainder=True)


# -------------------------------------------------------------------------------------------------- model

class OrderTagger(keras.Model):
    def __init__(self, units=12):
        super().__init__()
        self.embed = layers.Embedding(len(VOCABULARY) + 1, 8)
        self.read = layers.Bidirectional(layers.LSTM(units, return_sequences=True))
        self.tag = layers.Dense(len(TAGS))

    def call(self, words):
        known = tf.cast(words > 0, tf.float32)[..., None]
        logits = self.tag(self.read(self.embed(words) * known))
        # the padding mask travels with the logits as an additional column
        return tf.concat([logits, known], axis=-1)


def unpack(predicted):
    return predicted[..., :-1], predicted[..., -1]


def per_order(values, known):
    """Mean over the words of every order."""
    return tf.reduce_sum(values * known, axis=-1) / tf.maximum(tf.reduce_sum(known, axis=-1), 1.0)


def tag_loss(tags, predicted):
    logits, known = unpack(predicted)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.cast(tags, tf.int32), logits)
    return per_order(loss, known)


def hits(tags, predicted):
    logits, known = unpack(predicted)
    return tf.cast(tf.argmax(logits, axis=-1, output_type=tf.int32) == tf.cast(tags, tf.int32), tf.float32), known


@metric("words_right")
def words_right(tags, predicted):
    return per_order(*hits(tags, predicted))


@metric("order_right")
def order_right(tags, predicted):
    right, known = hits(tags, predicted)
    return tf.reduce_min(tf.maximum(right, 1.0 - known), axis=-1)


# ---------------------------------------------------------------------------------------------- callbacks

class LastingStop(keras.callbacks.EarlyStopping):
    """Early stopping that can go on from the state of an earlier run."""

    def __init__(self, earlier, **kwargs):
        super().__init__(**kwargs)
        self.earlier = earlier

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        if self.earlier:
            self.best, self.wait = self.earlier["best"], self.earlier["wait"]


class Notebook(keras.callbacks.Callback):
    """Saves the run after every epoch. Comes last in the list of callbacks."""

    def __init__(self, folder, stop, **parts):
        super().__init__()
        self.folder, self.stop = folder, stop
        self.lowest = float("inf")
        self.epoch = tf.Variable(0, trainable=False, dtype=tf.int64)
        self.manager = tf.train.CheckpointManager(
            tf.train.Checkpoint(epoch=self.epoch, **parts), os.path.join(folder, "ckpt"), max_to_keep=2)

    def page(self):
        return os.path.join(self.folder, f"epoch{int(self.epoch)}.json")

    def open(self):
        """Restores the newest epoch; returns what was written down with it."""
        if not self.manager.restore_or_initialize() or not int(self.epoch):
            return {}
        with open(self.page()) as page:
            state = json.load(page)
        self.lowest = state["lowest"]
        return state

    def on_epoch_end(self, epoch, logs=None):
        self.epoch.assign(epoch + 1)
        self.lowest = min(self.lowest, logs["val_loss"])
        state = {"best": float(self.stop.best), "wait": int(self.stop.wait), "lowest": float(self.lowest)}
        with open(self.page(), "w") as page:
            json.dump({**state, "stopped": bool(self.model.stop_training)}, page)
        self.manager.save()


class Log(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.time()

    def on_epoch_end(self, epoch, logs=None):
        values = " ".join(f"{k} {v:.4f}" for k, v in sorted(logs.items()))
        print(f"epoch {epoch + 1} ({time.time() - self.began:.0f} s): {values}")


def rate_of(epoch, base):
    return base * (1.0 if epoch < 2 else 0.6 ** (epoch - 1))


# -------------------------------------------------------------------------------------------------- main

def compile_tagger(strategy, args):
    with strategy.scope():
        tagger = OrderTagger()
        tagger(np.ones((1, LENGTH), "int32"))
        tagger.compile(
            optimizer=keras.optimizers.RMSprop(args.rate, rho=0.8, momentum=0.5),
            loss=tag_loss,
            metrics=list(METRICS.values()),
        )
        tagger.optimizer.build(tagger.trainable_variables)
    return tagger


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=0.008)
    parser.add_argument("--min-delta", type=float, default=0.12)
    parser.add_argument("--patience", type=int, default=3)
    parser.add_argument("--folder", default="state")
    args = parser.parse_args()
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), args.folder)
    os.makedirs(folder, exist_ok=True)
    best_path = os.path.join(folder, "best.weights.h5")

    keras.utils.set_random_seed(23)
    strategy = tf.distribute.MirroredStrategy()
    tagger = compile_tagger(strategy, args)
    stop = LastingStop({}, monitor="val_loss", mode="min", min_delta=args.min_delta, patience=args.patience)
    notebook = Notebook(folder, stop, tagger=tagger, optimizer=tagger.optimizer)
    stop.earlier = notebook.open()
    first = int(notebook.epoch)

    train, valid = orders(80, 1), orders(32, 2)
    held_out = tf.data.Dataset.from_tensor_slices(valid).batch(args.batch, drop_remainder=True)
    if first < args.epochs and not stop.earlier.get("stopped"):
        tagger.fit(
            training_data(train, args.batch, first, args.epochs, seed=300),
            epochs=args.epochs, initial_epoch=first, steps_per_epoch=len(train[0]) // args.batch,
            validation_data=held_out, verbose=0,
            callbacks=[
                keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate_of(epoch, args.rate)),
                keras.callbacks.ModelCheckpoint(
                    best_path, monitor="val_loss", mode="min", save_best_only=True, save_weights_only=True,
                    initial_value_threshold=stop.earlier.get("lowest")),
                stop, Log(), notebook,
            ],
        )
    print(f"lowest validation loss {notebook.lowest:.4f}, weights in {os.path.basename(best_path)}")
    scores = tagger.evaluate(held_out, verbose=0, return_dict=True)
    size = float(sum(np.abs(w).sum() for w in tagger.get_weights()))
    print("last: " + " ".join(f"{name} {value:.6f}" for name, value in sorted(scores.items())) + f" weights {size:.5f}")


if __name__ == "__main__":
    main()
