"""Queries with a varying number of documents, graded 0 to 3, padded to the longest list."""
import numpy as np
import tensorflow as tf


class Corpus:
    vocabulary = 60
    title_length = 4
    body_length = 8
    features = 5
    longest = 10

    def __init__(self, queries, seed):
        rng = np.random.default_rng(seed)
        # the world is the same for every corpus, only the queries are drawn anew
        world = np.random.default_rng(99)
        affinity = world.normal(size=self.vocabulary)
        weight = world.normal(size=self.features)
        shape = (queries, self.longest)
        self.title = rng.integers(1, self.vocabulary, shape + (self.title_length,)).astype("int32")
        self.body = rng.integers(1, self.vocabulary, shape + (self.body_length,)).astype("int32")
        self.dense = rng.normal(size=shape + (self.features,)).astype("float32")
        utility = (affinity[self.title].mean(-1) * 1.6 + affinity[self.body].mean(-1)
                   + 0.6 * self.dense @ weight + rng.normal(scale=0.3, size=shape))
        self.grade = np.digitize(utility, [-0.2, 0.8, 1.8]).astype("float32")
        # the lists are sorted by length, as an export by query group would be
        length = np.sort(rng.integers(3, self.longest + 1, queries))
        self.mask = (np.arange(self.longest) < length[:, None]).astype("float32")
        self.grade *= self.mask

    def dataset(self, batch, seed=None, repeat=False):
        inputs = {"title": self.title, "body": self.body, "dense": self.dense, "mask": self.mask}
        labels = np.stack([self.grade, self.mask], axis=-1)
        data = tf.data.Dataset.from_tensor_slices((inputs, labels))
        if seed is not None:
            data = data.shuffle(len(self.grade), seed=seed, reshuffle_each_iteration=True)
        data = data.batch(batch, drop_remainder=True)
        if repeat:
            data = data.repeat()
        return data.prefetch(tf.data.AUTOTUNE)
