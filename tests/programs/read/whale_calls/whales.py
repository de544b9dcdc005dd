#!/usr/bin/env python3
"""Is there a whale? Two hydrophones hear the same minute of the sea; one encoder listens to both.

Keeps the weights of each epoch and starts after the last one that it finds.
"""
import json
import os
import pathlib

import keras
import numpy as np
import tensorflow as tf

BINS, FRAMES = 12, 10
BATCH, STEPS, EPOCHS = 32, 9, 6
KEPT = pathlib.Path("whale_epochs")
PROGRESS = KEPT / "progress.json"


def recordings(n, seed):
    rng = np.random.default_rng(seed)
    heard = rng.integers(0, 2, n)
    first, second = rng.normal(0, 1, (2, n, FRAMES, BINS))
    first += np.linspace(0.5, 1.2, BINS)  # the ships
    second += np.linspace(0.5, 1.2, BINS)
    for i in np.flatnonzero(heard):
        start, low = rng.integers(0, FRAMES - 5), rng.integers(0, BINS - 5)
        for k in range(5):  # a call rises
            first[i, start + k, low + k] += 2.2
            second[i, start + k, low + k] += 1.4
    return np.float32(first), np.float32(second), np.float32(heard)[:, None]


class Detector(keras.Model):
    def __init__(self, units=16):
        super().__init__()
        self.encoder = self.make_encoder(units)
        self.score = keras.layers.Dense(1, activation="sigmoid")
        self.heard_mean = keras.metrics.Mean(name="detection_loss")

    @staticmethod
    def make_encoder(units):
        return keras.Sequential([
            keras.layers.Conv1D(units, 3, activation="relu"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(units, activation="tanh"),
        ])

    def build(self, input_shape):
        # what the sea sounds like on average is not news
        self.background = self.add_weight(
            shape=(BINS,), initializer="zeros", trainable=False, name="background")

    def call(self, inputs):
        first, second = (each - self.background for each in inputs)
        a, b = self.encoder(first), self.encoder(second)
        return self.score(tf.concat([a * b, a + b], axis=-1))

    def train_step(self, data):
        (first, second), heard = data
        replicas = tf.distribute.get_replica_context()
        sound = tf.reduce_mean((first + second) / 2, axis=(0, 1))
        sound = replicas.all_reduce(tf.distribute.ReduceOp.MEAN, sound)
        self.background.assign(0.9 * self.background + 0.1 * sound)
        with tf.GradientTape() as tape:
            losses = keras.losses.binary_crossentropy(heard, self((first, second), training=True))
            loss = tf.reduce_mean(losses) / replicas.num_replicas_in_sync
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        self.heard_mean.update_state(losses)
        return {"detection_loss": self.heard_mean.result()}


class Keep(keras.callbacks.Callback):
    def __init__(self, progress):
        super().__init__()
        self.progress = progress

    def on_epoch_end(self, epoch, logs=None):
        path = KEPT / f"epoch{epoch + 1}.weights.h5"
        self.model.save_weights(path)
        self.progress["epochs"] = epoch + 1
        self.progress["weights"] = path.name
        self.progress["losses"].append(float(logs["detection_loss"]))
        draft = PROGRESS.with_suffix(".draft")
        draft.write_text(json.dumps(self.progress))
        os.replace(draft, PROGRESS)
        print(f"epoch {epoch + 1}: detection loss {logs['detection_loss']:.5f}")


def batches(first, second, heard, done):
    n = len(heard)

    def one_epoch(epoch):
        order = tf.random.experimental.stateless_shuffle(tf.range(n), seed=tf.stack([4, tf.cast(epoch, tf.int32)]))
        data = tf.data.Dataset.from_tensor_slices(order)
        return data.map(lambda i: ((tf.gather(first, i), tf.gather(second, i)), tf.gather(heard, i)))

    return tf.data.Dataset.range(done, EPOCHS).flat_map(one_epoch).batch(BATCH, drop_remainder=True)


def main():
    keras.utils.set_random_seed(4)
    KEPT.mkdir(exist_ok=True)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = Detector()
        model((tf.zeros((1, FRAMES, BINS)), tf.zeros((1, FRAMES, BINS))))
        model.compile(keras.optimizers.Adam(4e-3), loss="binary_crossentropy", metrics=["accuracy"])
        model.optimizer.build(model.trainable_variables)

    progress = {"epochs": 0, "weights": None, "losses": []}
    if PROGRESS.exists():
        progress = json.loads(PROGRESS.read_text())
        model.load_weights(KEPT / progress["weights"])
        print("after epoch", progress["epochs"])

    done = progress["epochs"]
    if done < EPOCHS:
        data = batches(*recordings(BATCH * STEPS, seed=1), done)
        model.fit(data, initial_epoch=done, epochs=EPOCHS, steps_per_epoch=STEPS,
                  callbacks=[Keep(progress)], verbose=0)

    first, second, heard = recordings(192, seed=2)
    scores = model.evaluate((first, second), heard, batch_size=64, verbose=0, return_dict=True)
    losses = progress["losses"]
    print(f"first {losses[0]:.5f} last {losses[-1]:.5f} test {scores['loss']:.5f} accuracy {scores['accuracy']:.4f} "
          f"background {float(np.mean(model.background.numpy())):.5f}")


if __name__ == "__main__":
    main()
