"""Questions and their answers: two bags of words about the same subject."""
import numpy as np

VOCAB, LENGTH = 150, 10


def pairs(count, seed):
    rng = np.random.default_rng(seed)
    subjects = np.random.default_rng(99).dirichlet(np.full(VOCAB - 1, 0.05), size=40)
    chosen = rng.integers(0, len(subjects), count)

    def text():
        out = np.zeros((count, LENGTH), np.int32)
        for row, subject in enumerate(chosen):
            size = rng.integers(4, LENGTH + 1)
            p = 0.8 * subjects[subject] + 0.2 / (VOCAB - 1)
            out[row, :size] = 1 + rng.choice(VOCAB - 1, size, p=p / p.sum())
        return out

    return text(), text()


def shuffled(data, seed, epoch):
    order = np.random.default_rng([seed, epoch]).permutation(len(data[0]))
    return tuple(part[order] for part in data)
