"""A vectorized one-dimensional lander: hold a falling body near the origin with three thrusts."""
import dataclasses

import numpy as np

THRUST = np.array([-1.0, 0.0, 1.0], "float32")


@dataclasses.dataclass
class Episodes:
    """Transitions of all bodies, flattened over time."""
    observation: np.ndarray
    action: np.ndarray
    reward: np.ndarray      # (time, body)

    def returns(self, discount):
        out = np.zeros_like(self.reward)
        running = np.zeros(self.reward.shape[1], "float32")
        for t in reversed(range(len(self.reward))):
            running = self.reward[t] + discount * running
            out[t] = running
        return out


class Lander:
    def __init__(self, bodies, horizon):
        self.bodies, self.horizon = bodies, horizon

    def rollout(self, policy, rng):
        """Plays all bodies with `policy(observation) -> probabilities`."""
        position = rng.normal(scale=1.0, size=self.bodies).astype("float32")
        speed = rng.normal(scale=0.3, size=self.bodies).astype("float32")
        wind = rng.normal(scale=0.1, size=(self.horizon, self.bodies)).astype("float32")
        draws = rng.random((self.horizon, self.bodies))
        seen, done, paid = [], [], []
        for t in range(self.horizon):
            observation = np.stack([position, speed, position * speed], axis=1)
            chances = np.cumsum(policy(observation), axis=1)
            action = np.minimum((draws[t][:, None] > chances).sum(1), len(THRUST) - 1)
            speed = 0.95 * speed + 0.25 * THRUST[action] + wind[t]
            position = position + 0.3 * speed
            seen.append(observation)
            done.append(action)
            paid.append(-np.abs(position) - 0.05 * np.abs(THRUST[action]))
        return Episodes(np.concatenate(seen).astype("float32"), np.concatenate(done).astype("int32"),
                        np.stack(paid).astype("float32"))
