"""Vectors of songs from playlists: songs that are often neighbours get similar vectors.

No Keras: a tf.Module for the vectors, another one for Adagrad.
"""
from pathlib import Path

import numpy as np
import tensorflow as tf

SONGS, SIZE, NEGATIVES = 60, 8, 5
STEPS, SAVE_EVERY = 40, 10
BATCH = 64
FOLDER = Path("vectors_kept")


def neighbours(pairs, seed):
    """Pairs of songs from playlists; each playlist keeps to a genre, and the first songs are played most."""
    rng = np.random.default_rng(seed)
    fame = 1.0 / np.arange(1, SONGS + 1)
    genre = np.arange(SONGS) % 4
    first = rng.choice(SONGS, pairs, p=fame / fame.sum())
    second = np.empty(pairs, np.int64)
    for i, song in enumerate(first):
        p = fame * np.where(genre == genre[song], 8.0, 1.0)
        second[i] = rng.choice(SONGS, p=p / p.sum())
    order = np.argsort(first)
    return first[order].astype(np.int32), second[order].astype(np.int32)


class Songs(tf.Module):
    def __init__(self):
        super().__init__()
        draw = np.random.default_rng(3)
        self.song = tf.Variable(draw.normal(0, 0.3, (SONGS, SIZE)), dtype=tf.float32)
        self.context = tf.Variable(draw.normal(0, 0.3, (SONGS, SIZE)), dtype=tf.float32)
        self.bias = tf.Variable(tf.zeros(SONGS))

    def logits(self, song, other):
        likeness = tf.reduce_sum(tf.gather(self.song, song) * tf.gather(self.context, other), axis=-1)
        return likeness + tf.gather(self.bias, other)


class Adagrad(tf.Module):
    def __init__(self, variables, rate):
        super().__init__()
        self.rate = rate
        self.variables_ = list(variables)
        self.sums = [tf.Variable(tf.fill(v.shape, 0.05), trainable=False) for v in self.variables_]

    def apply(self, gradients):
        for v, total, g in zip(self.variables_, self.sums, gradients):
            total.assign_add(tf.square(g))
            v.assign_sub(self.rate * g / tf.sqrt(total))


def batches(first, second, begin):
    """The batch of a step depends on the number of the step alone."""
    first, second = tf.constant(first), tf.constant(second)

    def one(step):
        seed = tf.stack([11, tf.cast(step, tf.int32)])
        rows = tf.sort(tf.random.stateless_uniform((BATCH,), seed, maxval=len(first), dtype=tf.int32))
        wrong = tf.random.stateless_uniform((BATCH, NEGATIVES), seed + 1, maxval=SONGS, dtype=tf.int32)
        return tf.gather(first, rows), tf.gather(second, rows), wrong

    return tf.data.Dataset.range(begin, STEPS).map(one)


def main():
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        songs = Songs()
        adagrad = Adagrad([songs.song, songs.context, songs.bias], rate=0.15)
        # how often a song has been heard of late; songs that are heard often count less
        heard = tf.Variable(tf.ones(SONGS) / SONGS, trainable=False)
        step = tf.Variable(0, dtype=tf.int64, trainable=False)
    saved = tf.train.Checkpoint(songs=songs, adagrad=adagrad, heard=heard, step=step)
    manager = tf.train.CheckpointManager(saved, FOLDER, max_to_keep=3, step_counter=step)
    if manager.restore_or_initialize():
        print("from step", int(step.numpy()))

    def part_of_loss(song, other, wrong, whole):
        right = tf.nn.softplus(-songs.logits(song, other))
        wrongs = tf.reduce_mean(tf.nn.softplus(songs.logits(song[:, None], wrong)), axis=1)
        weights = tf.minimum(1.0, tf.sqrt(0.02 / tf.gather(heard, song)))
        total = whole(tf.reduce_sum(weights))
        return tf.reduce_sum(weights * (right + wrongs)) / total

    def gradients(song, other, wrong):
        context = tf.distribute.get_replica_context()
        with tf.GradientTape() as tape:
            loss = part_of_loss(song, other, wrong, lambda n: context.all_reduce("SUM", n))
        found = tape.gradient(loss, adagrad.variables_)
        counts = tf.math.bincount(song, minlength=SONGS, maxlength=SONGS, dtype=tf.float32)
        return loss, [tf.convert_to_tensor(g) for g in found], counts / BATCH

    @tf.function
    def train_step(song, other, wrong):
        loss, found, counts = strategy.run(gradients, args=(song, other, wrong))
        adagrad.apply([strategy.reduce("SUM", g, axis=None) for g in found])
        heard.assign(0.95 * heard + 0.05 * strategy.reduce("SUM", counts, axis=None))
        step.assign_add(1)
        return strategy.reduce("SUM", loss, axis=None)

    data = strategy.experimental_distribute_dataset(batches(*neighbours(1500, seed=1), int(step.numpy())))
    for batch in data:
        loss = float(train_step(*batch))
        if int(step.numpy()) % SAVE_EVERY == 0:
            print(f"step {int(step.numpy())}: loss {loss:.5f}")
            manager.save()

    first, second = neighbours(400, seed=2)
    score = tf.nn.softplus(-songs.logits(first, second))
    size = float(tf.norm(songs.song.numpy()))
    print(f"unseen pairs {float(tf.reduce_mean(score)):.5f} size {size:.5f} heard most {float(tf.reduce_max(heard)):.5f}")


if __name__ == "__main__":
    main()
