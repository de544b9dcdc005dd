"""Sentences of a made-up grammar: a determiner opens a noun phrase, a verb ends it."""
import numpy as np
import tensorflow as tf

WORDS = 40  # 0 is padding, 1-4 determiners, 5-12 verbs, the others are nouns and particles
TAGS = 4  # outside, begins a phrase, in a phrase, verb
LONGEST = 14


def sentence(rng):
    length = int(rng.integers(3, LONGEST + 1))
    words, tags, inside = [], [], False
    for _ in range(length):
        word = int(rng.choice([rng.integers(1, 5), rng.integers(5, 13), rng.integers(13, WORDS)], p=[0.2, 0.2, 0.6]))
        if word < 5:
            tag, inside = 1, True
        elif word < 13:
            tag, inside = 3, False
        else:
            tag = 2 if inside else 0
        words.append(word)
        tags.append(tag)
    return words, tags


def corpus(count, seed):
    """Sentences as they are in the file: the short ones first."""
    rng = np.random.default_rng(seed)
    return sorted((sentence(rng) for _ in range(count)), key=lambda pair: len(pair[0]))


def padded(pairs):
    words, tags = (np.zeros((len(pairs), LONGEST), np.int32) for _ in range(2))
    for row, (ids, labels) in enumerate(pairs):
        words[row, : len(ids)] = ids
        tags[row, : len(labels)] = labels
    return words, tags


def batches(pairs, size, seed=None):
    data = tf.data.Dataset.from_tensor_slices(padded(pairs))
    if seed is not None:
        data = data.shuffle(len(pairs), seed=seed)
    return data.batch(size)
