"""Spotting of spoken commands: a small acoustic model trained with CTC.

    python listen.py --epochs 4
"""
import argparse

import keras
import numpy as np
import tensorflow as tf

PHONES = 9  # 0 is the blank
FRAMES, MELS = 36, 10
LEXICON = [(1, 4, 2), (3, 1), (5, 6, 7, 2), (8, 3, 4), (2, 5), (7, 7, 1)]  # up, go, stop, left, no, yes-yes


def utterances(count, seed):
    """Log-mel frames of commands that begin somewhere and are spoken at any speed."""
    rng = np.random.default_rng(seed)
    timbre = np.random.default_rng(99).normal(size=(PHONES, MELS))
    frames = 0.5 * rng.normal(size=(count, FRAMES, MELS))
    phones = np.zeros((count, 4), "int32")
    lengths = np.zeros(count, "int32")
    for i in range(count):
        word = LEXICON[rng.integers(len(LEXICON))]
        phones[i, : len(word)], lengths[i] = word, len(word)
        at = rng.integers(0, 4)
        for phone in word:
            spoken = rng.integers(4, 8)
            frames[i, at : at + spoken] += timbre[phone]
            at += spoken + 1
    return frames.astype("float32"), phones, lengths


def acoustic_model():
    return keras.Sequential([
        keras.Input((FRAMES, MELS)),
        keras.layers.Conv1D(24, 5, padding="same", activation="relu"),
        keras.layers.Conv1D(24, 3, padding="same", activation="relu"),
        keras.layers.Dense(PHONES),
    ])


def edit_distance(heard, said):
    """How many phones have to be changed in what was heard."""
    row = np.arange(len(said) + 1)
    for i, a in enumerate(heard, 1):
        last, row[0] = row[0], i
        for j, b in enumerate(said, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (a != b))
    return int(row[-1])


def collapse(path):
    kept = [p for p, before in zip(path, [0, *path]) if p != before]
    return [p for p in kept if p != 0]


class Listener:
    def __init__(self, strategy, batch, rate):
        self.strategy, self.batch = strategy, batch
        with strategy.scope():
            self.model = acoustic_model()
            self.optimizer = keras.optimizers.SGD(rate, momentum=0.9, nesterov=True)
            self.optimizer.build(self.model.trainable_variables)

    def batches(self, count, seed):
        data = tf.data.Dataset.from_tensor_slices(utterances(count, seed)).batch(self.batch, drop_remainder=True)
        return self.strategy.experimental_distribute_dataset(data)

    def learn_from(self, frames, phones, lengths):
        with tf.GradientTape() as tape:
            logits = self.model(frames, training=True)
            times = tf.fill([tf.shape(logits)[0]], FRAMES)
            each = tf.nn.ctc_loss(phones, logits, lengths, times, logits_time_major=False, blank_index=0)
            loss = tf.reduce_sum(each) / self.batch
        weights = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    @tf.function
    def step(self, frames, phones, lengths):
        shares = self.strategy.run(self.learn_from, args=(frames, phones, lengths))
        return self.strategy.reduce("SUM", shares, axis=None)

    @tf.function
    def hear(self, frames):
        best = self.strategy.run(lambda part: tf.argmax(self.model(part, training=False), -1), args=(frames,))
        return self.strategy.gather(best, axis=0)

    def phone_errors(self, data):
        wrong = total = 0
        for frames, phones, lengths in data:
            paths = self.hear(frames).numpy()
            said = self.strategy.gather(phones, axis=0).numpy()
            for path, phone, length in zip(paths, said, self.strategy.gather(lengths, axis=0).numpy()):
                wrong += edit_distance(collapse(list(path)), list(phone[:length]))
                total += int(length)
        return wrong / total


def main():
    reader = argparse.ArgumentParser()
    reader.add_argument("--epochs", type=int, default=4)
    reader.add_argument("--batch", type=int, default=32)
    reader.add_argument("--rate", type=float, default=0.02)
    told = reader.parse_args()
    keras.utils.set_random_seed(11)
    listener = Listener(tf.distribute.MirroredStrategy(), told.batch, told.rate)
    train, test = listener.batches(256, 1), listener.batches(96, 2)
    for epoch in range(told.epochs):
        losses = [float(listener.step(*batch)) for batch in train]
        print(f"epoch {epoch + 1}: CTC loss {np.mean(losses):.4f}", flush=True)
    size = sum(float(np.abs(weight.numpy()).sum()) for weight in listener.model.trainable_variables)
    print(f"loss {np.mean(losses):.4f} phone errors {listener.phone_errors(test):.4f} weights {size:.4f}")


if __name__ == "__main__":
    main()
