"""Made-up reviews: numbers of words, 0 where a review has ended."""
import numpy as np
import tensorflow as tf


def vectors(vocabulary, width):
    """Word vectors, as if trained elsewhere: liked words lie apart from disliked ones."""
    rng = np.random.default_rng(11)
    table = rng.normal(size=(vocabulary, width)).astype("float32") * 0.5
    table[1 : vocabulary // 3, 0] += 0.4
    table[2 * vocabulary // 3 :, 0] -= 0.4
    return table


def reviews(rows, vocabulary, length, seed):
    rng = np.random.default_rng(seed)
    liked = rng.integers(0, 2, rows)
    words = rng.integers(1, vocabulary, (rows, length))
    third = vocabulary // 3
    hint = np.where(liked[:, None] == 1, rng.integers(1, third, (rows, length)), rng.integers(2 * third, vocabulary, (rows, length)))
    words = np.where(rng.random((rows, length)) < 0.3, hint, words)
    ends = rng.integers(length // 2, length + 1, rows)
    words[np.arange(length)[None] >= ends[:, None]] = 0
    order = np.argsort(ends, kind="stable")  # of about one length in a batch
    return words[order].astype("int32"), liked[order, None].astype("float32")


def batches(rows, seed, config):
    pair = reviews(rows, config["vocabulary"], config["length"], seed)
    return tf.data.Dataset.from_tensor_slices(pair).batch(config["batch"])
