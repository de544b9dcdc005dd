"""Double DQN with a replay memory; can be stopped and started again at any time."""
import argparse
import os
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from learner import Learner
from store import Store
from world import Memory, WindyGrid


@dataclass
class Config:
    rounds: int = 8
    moves: int = 24              # moves in the world per round
    updates: int = 5             # gradient steps per round
    batch: int = 32              # over all devices
    capacity: int = 128
    learning_rate: float = 0.1
    discount: float = 0.9
    sync_every: int = 7
    epsilon_start: float = 1.0
    epsilon_end: float = 0.3
    seed: int = 4


class Agent:
    def __init__(self, config, folder):
        self.config = config
        self.rng = np.random.default_rng(config.seed)
        self.world = WindyGrid()
        self.memory = Memory(config.capacity)
        self.learner = Learner(tf.distribute.MirroredStrategy(), config)
        self.store = Store(folder, self.learner.trackables())
        self.round = 0
        self.moves_made = 0
        self.returns = 0.0
        self.best_round = -np.inf
        self.observation = self.world.reset(self.rng)

    @property
    def epsilon(self):
        share = min(self.moves_made / (self.config.rounds * self.config.moves), 1.0)
        return self.config.epsilon_start + share * (self.config.epsilon_end - self.config.epsilon_start)

    def facts(self):
        return {"round": self.round, "moves_made": self.moves_made, "returns": self.returns, "best_round": self.best_round,
                "position": list(self.world.position), "age": self.world.age, "rng": self.rng.bit_generator.state}

    def resume(self):
        facts = self.store.load(self.memory)
        if facts is None:
            return
        self.round, self.moves_made = facts["round"], facts["moves_made"]
        self.returns, self.best_round = facts["returns"], facts["best_round"]
        self.world.position, self.world.age = tuple(facts["position"]), facts["age"]
        self.observation = self.world.observe()
        self.rng.bit_generator.state = facts["rng"]
        print(f"goes on after round {self.round}")

    def play(self):
        """Some moves with the present policy; returns the reward earned and its mean size."""
        earned, size = 0.0, 0.0
        for _ in range(self.config.moves):
            if self.rng.random() < self.epsilon:
                action = int(self.rng.integers(4))
            else:
                action = self.learner.act(self.observation)
            after, reward, over = self.world.step(action, self.rng)
            self.memory.add(self.observation, action, reward, after, float(over))
            self.observation = self.world.reset(self.rng) if over else after
            self.moves_made += 1
            earned += reward
            size += abs(reward)
        return earned, size / self.config.moves

    def learn(self):
        losses = []
        for _ in range(self.config.updates):
            batch = self.memory.sample(self.config.batch, self.rng)
            losses.append(self.learner.update(batch))
        return float(np.mean(losses))

    def run(self):
        self.resume()
        loss = float("nan")
        while self.round < self.config.rounds:
            earned, size = self.play()
            self.learner.adapt(size)
            loss = self.learn()
            self.round += 1
            self.returns += earned
            self.best_round = max(self.best_round, earned)
            print(f"round {self.round}: loss {loss:.5f} earned {earned:.2f} epsilon {self.epsilon:.3f}")
            self.store.save(self.round, self.memory, self.facts())
        probe = np.random.default_rng(0).random((40, 6)).astype("float32")
        values = self.learner.online(probe).numpy()
        return self.returns, self.best_round, float(np.abs(values).mean()), self.learner


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=Config.rounds)
    parser.add_argument("--folder", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "run"))
    args = parser.parse_args()
    returns, best_round, value, learner = Agent(Config(rounds=args.rounds), args.folder).run()
    weights = sum(float(np.abs(w.numpy()).sum()) for w in learner.online.trainable_variables)
    print(f"done: returns {returns:.5f} best round {best_round:.5f} value {value:.6f} weights {weights:.5f}")


if __name__ == "__main__":
    main()
