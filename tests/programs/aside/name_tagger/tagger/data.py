"""Sentences of made-up words with the tags 1 (other), 2 (person) and 3 (place); 0 fills a sentence up."""
import numpy as np
import tensorflow as tf

WORDS, TAGS, LONGEST = 50, 4, 12


def corpus(count, seed):
    """Ordered as a newspaper is: long reports and short notices take turns by blocks of four."""
    rng = np.random.default_rng(seed)
    words, tags = np.zeros((count, LONGEST), np.int32), np.zeros((count, LONGEST), np.int32)
    for row in range(count):
        length = rng.integers(9, LONGEST + 1) if row // 4 % 2 else rng.integers(2, 5)
        line = rng.integers(1, WORDS, length)
        after = np.concatenate([[0], line[:-1]])
        person = (line % 7 == 3) | ((line % 3 == 0) & (after < 10))
        place = ~person & ((line % 5 == 1) & (after % 2 == 0))
        words[row, :length] = line
        tags[row, :length] = 1 + person + 2 * place
    return words, tags


def weighted(words, tags):
    """The weights of the words of a batch add up to one."""
    counted = tf.cast(tags > 0, tf.float32)
    return words, tags, counted / tf.reduce_sum(counted)


def batches(table, batch):
    return tf.data.Dataset.from_tensor_slices(table).batch(batch, drop_remainder=True).map(weighted)
