"""Artificial sentences with a tag for every word, and the curriculum over their lengths."""
from dataclasses import dataclass

import numpy as np

WORDS, TAGS, LONGEST = 40, 5, 10


@dataclass(frozen=True)
class Stage:
    longest: int
    rate: float
    epochs: int


CURRICULUM = (Stage(4, 0.5, 2), Stage(7, 0.3, 2), Stage(LONGEST, 0.1, 99))


class Corpus:
    def __init__(self, sentences=160, held_out=48, seed=12):
        rng = np.random.default_rng(seed)
        self.words, self.tags, self.lengths = self._write(sentences, rng)
        self.test = self._write(held_out, rng)

    @staticmethod
    def _write(count, rng):
        lengths = rng.integers(2, LONGEST + 1, count)
        words = rng.integers(1, WORDS, (count, LONGEST)).astype("int32")
        words[np.arange(LONGEST)[None] >= lengths[:, None]] = 0
        previous = np.concatenate([np.zeros((count, 1), "int32"), words[:, :-1]], axis=1)
        tags = ((words % 3 + (previous > WORDS // 2)) % TAGS).astype("int32")
        return words, tags, lengths

    def epoch(self, number, stage, batch):
        """Whole batches of the sentences that the stage admits, in an order of its own for each epoch."""
        rows = np.flatnonzero(self.lengths <= stage.longest)
        rows = np.random.default_rng((77, number)).permutation(rows)
        for start in range(0, len(rows) - batch + 1, batch):
            some = rows[start:start + batch]
            yield self.words[some], self.tags[some]
