"""A windy grid with a goal, and the memory of what happened in it."""
import numpy as np

MOVES = ((0, 1), (0, -1), (1, 0), (-1, 0))


class WindyGrid:
    def __init__(self, size=5):
        self.size = size
        self.goal = (size - 1, size - 1)
        self.position = (0, 0)
        self.age = 0

    def observe(self):
        r, c = self.position
        n = self.size - 1
        return np.array([r / n, c / n, (self.goal[0] - r) / n, (self.goal[1] - c) / n, float(r == c), self.age / 20.0], "float32")

    def reset(self, rng):
        self.position = tuple(int(v) for v in rng.integers(0, self.size - 1, 2))
        self.age = 0
        return self.observe()

    def step(self, action, rng):
        dr, dc = MOVES[action]
        if rng.random() < 0.1:
            dr, dc = MOVES[int(rng.integers(4))]
        self.position = (min(max(self.position[0] + dr, 0), self.size - 1), min(max(self.position[1] + dc, 0), self.size - 1))
        self.age += 1
        done = self.position == self.goal
        reward = 1.0 if done else -0.05
        return self.observe(), reward, done or self.age >= 20


class Memory:
    """Ring buffer of transitions."""

    FIELDS = (("before", (6,), "float32"), ("action", (), "int32"), ("reward", (), "float32"),
              ("after", (6,), "float32"), ("ended", (), "float32"))

    def __init__(self, capacity):
        self.capacity = capacity
        self.columns = {name: np.zeros((capacity,) + shape, dtype) for name, shape, dtype in self.FIELDS}
        self.place = 0
        self.filled = 0

    def add(self, *values):
        for (name, _, _), value in zip(self.FIELDS, values):
            self.columns[name][self.place] = value
        self.place = (self.place + 1) % self.capacity
        self.filled = min(self.filled + 1, self.capacity)

    def sample(self, size, rng):
        rows = rng.integers(0, self.filled, size)
        return tuple(self.columns[name][rows] for name, _, _ in self.FIELDS)

    def dump(self):
        return dict(self.columns, place=self.place, filled=self.filled)

    def load(self, stored):
        for name in self.columns:
            self.columns[name][:] = stored[name]
        self.place = int(stored["place"])
        self.filled = int(stored["filled"])
