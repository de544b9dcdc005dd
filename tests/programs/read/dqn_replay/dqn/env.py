import numpy as np


class Corridor:
    """Walk right to the goal at the end of a corridor; a wind sometimes blows back."""

    def __init__(self, length=8, wind=0.1, limit=24):
        self.length, self.wind, self.limit = length, wind, limit

    def reset(self):
        self.place, self.time = 0, 0
        return self.observation()

    def observation(self):
        return np.eye(self.length, dtype=np.float32)[self.place]

    def step(self, action, rng):
        move = 1 if action == 1 else -1
        if rng.random() < self.wind:
            move = -1
        self.place = int(np.clip(self.place + move, 0, self.length - 1))
        self.time += 1
        goal = self.place == self.length - 1
        return self.observation(), (1.0 if goal else -0.02), goal, goal or self.time >= self.limit
