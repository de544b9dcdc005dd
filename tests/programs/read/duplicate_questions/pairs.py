"""Question pairs of the help forum (generated): same topic or not."""
import numpy as np

VOCAB, LENGTH = 100, 8


def question_pairs(count, seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, VOCAB, (count, LENGTH))
    second = rng.integers(0, VOCAB, (count, LENGTH))
    same = (rng.random(count) < 0.35).astype("float32")
    topic = rng.integers(0, 12, count)
    other = np.where(same > 0, topic, (topic + rng.integers(1, 12, count)) % 12)
    for i in range(count):
        first[i, rng.choice(LENGTH, 3, False)] = topic[i] * 5 + rng.integers(0, 5, 3)
        second[i, rng.choice(LENGTH, 3, False)] = other[i] * 5 + rng.integers(0, 5, 3)
    return {"a": first.astype("int32"), "b": second.astype("int32")}, same
