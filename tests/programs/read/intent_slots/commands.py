"""Spoken commands: an intent for the whole and a slot for each word."""
import numpy as np


class Commands:

    def __init__(self, data):
        self.data = data
        rng = np.random.default_rng(data.seed)
        self.slot_of = rng.integers(0, data.slots, size=data.vocab)
        self.words = [rng.choice(np.arange(1, data.vocab), 30, replace=False) for _ in range(data.intents)]

    def draw(self, count, *seed):
        """The same seed gives the same commands."""
        data = self.data
        rng = np.random.default_rng((data.seed, *seed))
        intents = rng.integers(0, data.intents, count).astype(np.int32)
        ids = np.zeros((count, data.length), np.int32)
        slots = np.zeros((count, data.length), np.int32)
        for row, intent in enumerate(intents):
            size = rng.choice([3, 4, data.length])
            common = rng.random(size) < 0.3
            ids[row, :size] = np.where(
                common, rng.integers(1, data.vocab, size), rng.choice(self.words[intent], size))
            slots[row] = self.slot_of[ids[row]]
        return ids, intents, slots
