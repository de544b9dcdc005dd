import numpy as np


class ReplayBuffer:
    FIELDS = ("obs", "action", "reward", "next_obs", "done")

    def __init__(self, capacity, size):
        self.capacity, self.length, self.next = capacity, 0, 0
        self.obs = np.zeros((capacity, size), np.float32)
        self.next_obs = np.zeros((capacity, size), np.float32)
        self.action = np.zeros(capacity, np.int32)
        self.reward = np.zeros(capacity, np.float32)
        self.done = np.zeros(capacity, np.float32)

    def add(self, *transition):
        for field, value in zip(self.FIELDS, transition):
            getattr(self, field)[self.next] = value
        self.next = (self.next + 1) % self.capacity
        self.length = min(self.length + 1, self.capacity)

    def sample(self, n, rng):
        index = rng.integers(0, self.length, n)
        return tuple(getattr(self, field)[index] for field in self.FIELDS)

    def state(self):
        return {f: getattr(self, f) for f in self.FIELDS} | {"length": self.length, "next": self.next}

    def load(self, state):
        for f in self.FIELDS:
            getattr(self, f)[:] = state[f]
        self.length, self.next = int(state["length"]), int(state["next"])
