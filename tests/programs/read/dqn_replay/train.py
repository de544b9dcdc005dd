import json
import os

import numpy as np
import tensorflow as tf

from dqn.env import Corridor
from dqn.replay import ReplayBuffer

EPISODES, SAVE_EVERY = 60, 10
BATCH, GAMMA, SYNC = 32, 0.95, 50
DIR = "run"


def q_network(size, actions, seed):
    return tf.keras.Sequential([
        tf.keras.Input((size,)),
        tf.keras.layers.Dense(24, activation="tanh", kernel_initializer=tf.keras.initializers.GlorotNormal(seed=seed)),
        tf.keras.layers.Dense(actions, kernel_initializer=tf.keras.initializers.GlorotNormal(seed=seed + 1)),
    ])


class Agent:
    def __init__(self, strategy, size, actions):
        self.strategy = strategy
        with strategy.scope():
            self.online = q_network(size, actions, 5)
            self.target = q_network(size, actions, 5)
            self.optimizer = tf.keras.optimizers.Adam(2e-3)
            self.optimizer.build(self.online.trainable_variables)
            self.updates = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.target.set_weights(self.online.get_weights())

    def act(self, obs, epsilon, rng):
        if rng.random() < epsilon:
            return int(rng.integers(2))
        return int(np.argmax(self.online(obs[None]).numpy()[0]))

    def _replica(self, obs, action, reward, next_obs, done):
        best = tf.reduce_max(self.target(next_obs), axis=1)
        wanted = reward + GAMMA * (1.0 - done) * best
        with tf.GradientTape() as tape:
            q = tf.gather(self.online(obs), action, batch_dims=1)
            loss = tf.nn.compute_average_loss(tf.square(wanted - q), global_batch_size=BATCH)
        variables = self.online.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    @tf.function
    def _update(self, batch):
        losses = self.strategy.run(self._replica, args=batch)
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    def learn(self, batch):
        n = BATCH // self.strategy.num_replicas_in_sync

        def part(array):
            return self.strategy.experimental_distribute_values_from_function(
                lambda ctx: tf.constant(array[ctx.replica_id_in_sync_group * n:][:n]))

        loss = self._update(tuple(part(a) for a in batch))
        self.updates.assign_add(1)
        if int(self.updates.numpy()) % SYNC == 0:
            self.target.set_weights(self.online.get_weights())
        return float(loss)


def main():
    rng = np.random.default_rng(7)
    env, buffer = Corridor(), ReplayBuffer(500, 8)
    agent = Agent(tf.distribute.MirroredStrategy(), 8, 2)
    ckpt = tf.train.Checkpoint(online=agent.online, target=agent.target, optimizer=agent.optimizer,
                               updates=agent.updates)
    os.makedirs(DIR, exist_ok=True)
    first, returns = 0, []
    if os.path.exists(f"{DIR}/last.json"):
        with open(f"{DIR}/last.json") as f:
            last = json.load(f)
        ckpt.read(last["checkpoint"]).assert_consumed()
        buffer.load(np.load(last["buffer"]))
        rng.bit_generator.state = last["rng"]
        first, returns = last["episode"], last["returns"]
        print("resumed at episode", first)

    for episode in range(first, EPISODES):
        obs, total, over = env.reset(), 0.0, False
        epsilon = max(0.05, 1.0 - episode / 30)
        while not over:
            action = agent.act(obs, epsilon, rng)
            following, reward, goal, over = env.step(action, rng)
            buffer.add(obs, action, reward, following, float(goal))
            obs, total = following, total + reward
            if buffer.length >= 100:
                agent.learn(buffer.sample(BATCH, rng))
        returns.append(total)
        if (episode + 1) % SAVE_EVERY == 0:
            np.savez(f"{DIR}/buffer_{episode + 1}.npz", **buffer.state())
            path = ckpt.write(f"{DIR}/ckpt_{episode + 1}")
            with open(f"{DIR}/tmp.json", "w") as f:
                json.dump({"checkpoint": path, "buffer": f"{DIR}/buffer_{episode + 1}.npz", "episode": episode + 1,
                           "rng": rng.bit_generator.state, "returns": returns}, f)
            os.replace(f"{DIR}/tmp.json", f"{DIR}/last.json")
            print(f"episode {episode + 1}: mean return {np.mean(returns[-SAVE_EVERY:]):.4f}")
    start = np.eye(8, dtype=np.float32)[:1]
    print("Q(start) =", np.round(agent.online(start).numpy()[0].astype(float), 3).tolist())


if __name__ == "__main__":
    main()
