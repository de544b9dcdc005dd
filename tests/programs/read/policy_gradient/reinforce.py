"""REINFORCE with a running baseline on the lander, on all devices of the machine.

Usage: python reinforce.py [--iterations N]. Started again, it goes on after the last checkpoint.
"""
import argparse
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from bookkeeping import RunningReturn, SideFile
from world import THRUST, Lander

FOLDER = Path(__file__).resolve().parent / "state"


def build_policy(width):
    return keras.Sequential([
        keras.Input([3]),
        keras.layers.Dense(width, activation="tanh"),
        keras.layers.Dense(len(THRUST)),
    ])


def entropy_of(logits):
    log_chance = tf.nn.log_softmax(logits)
    return -tf.reduce_sum(tf.exp(log_chance) * log_chance, axis=-1)


class Agent:
    discount = 0.9
    clip = 0.35
    entropy_decay = 0.93

    def __init__(self, args):
        self.args = args
        self.strategy = tf.distribute.MirroredStrategy()
        self.lander = Lander(args.bodies, args.horizon)
        self.rng = np.random.default_rng(args.seed)
        self.statistics = RunningReturn()
        self.entropy = 0.05
        self.global_batch = args.bodies * args.horizon
        with self.strategy.scope():
            self.policy = build_policy(args.width)
            self.optimizer = keras.optimizers.SGD(args.rate, momentum=0.9)
            self.optimizer.build(self.policy.trainable_variables)
        self.iteration = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.checkpoint = tf.train.Checkpoint(policy=self.policy, optimizer=self.optimizer, iteration=self.iteration)
        self.manager = tf.train.CheckpointManager(self.checkpoint, str(FOLDER), max_to_keep=2)
        self.side = SideFile(FOLDER)
        self.resume()

    # -- state

    def resume(self):
        latest = self.manager.latest_checkpoint
        if latest is None:
            return
        self.checkpoint.restore(latest).assert_consumed()
        self.entropy = self.side.read(int(self.iteration), self.statistics, self.rng)
        print("continuing after iteration", int(self.iteration))

    def save(self):
        self.side.write(int(self.iteration), self.statistics, self.rng, self.entropy)
        self.manager.save()

    # -- acting

    @tf.function(reduce_retracing=True)
    def chances(self, observation):
        return tf.nn.softmax(self.policy(observation))

    def act(self, observation):
        return self.chances(tf.constant(observation)).numpy().astype("float64")

    # -- learning

    def surrogate(self, logits, action, advantage, bonus):
        """Loss of each transition."""
        log_chance = -tf.nn.sparse_softmax_cross_entropy_with_logits(action, logits)
        return -log_chance * advantage - bonus * entropy_of(logits)

    def replica_update(self, observation, action, advantage, bonus):
        weights = self.policy.trainable_variables
        with tf.GradientTape() as tape:
            logits = self.policy(observation)
            losses = self.surrogate(logits, action, advantage, bonus)
            loss = tf.reduce_sum(losses) / self.global_batch
        grads = tape.gradient(loss, weights)
        context = tf.distribute.get_replica_context()
        grads, _ = tf.clip_by_global_norm(context.all_reduce("SUM", grads), self.clip)
        self.optimizer.apply_gradients([(g / context.num_replicas_in_sync, w) for g, w in zip(grads, weights)])
        return loss, tf.reduce_sum(entropy_of(logits)) / self.global_batch

    @tf.function
    def update(self, batch, bonus):
        loss, entropy = self.strategy.run(self.replica_update, args=(*batch, bonus))
        return (self.strategy.reduce("SUM", loss, axis=None), self.strategy.reduce("SUM", entropy, axis=None))

    def shards(self, *arrays):
        """One batch with all transitions, spread over the replicas."""
        dataset = tf.data.Dataset.from_tensors(arrays).unbatch().batch(self.global_batch, drop_remainder=True)
        return next(iter(self.strategy.experimental_distribute_dataset(dataset)))

    def iterate(self):
        episodes = self.lander.rollout(self.act, self.rng)
        returns = episodes.returns(self.discount)
        self.statistics.update(returns)
        advantage = self.statistics.advantages(returns).reshape(-1)
        batch = self.shards(episodes.observation, episodes.action, advantage)
        loss, entropy = self.update(batch, tf.constant(self.entropy, tf.float32))
        self.entropy *= self.entropy_decay
        self.iteration.assign_add(1)
        return float(loss), float(entropy), float(episodes.reward.mean())

    def evaluate(self):
        return self.lander.rollout(self.act, np.random.default_rng(self.args.seed + 1)).reward.mean()

    def train(self):
        while int(self.iteration) < self.args.iterations:
            loss, entropy, reward = self.iterate()
            number = int(self.iteration)
            if number % self.args.save_every == 0:
                self.save()
                print(f"iteration {number}: loss {loss:.5f} entropy {entropy:.5f} reward {reward:.5f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--save-every", type=int, default=4)
    parser.add_argument("--bodies", type=int, default=24)
    parser.add_argument("--horizon", type=int, default=12)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=8)
    args = parser.parse_args()
    keras.utils.set_random_seed(args.seed)
    agent = Agent(args)
    agent.train()
    size = sum(float(np.abs(w).sum()) for w in agent.policy.get_weights())
    print(f"final: reward {agent.evaluate():.5f} baseline {agent.statistics.mean:.5f} "
          f"entropy bonus {agent.entropy:.6f} weights {size:.5f}")


if __name__ == "__main__":
    main()
