"""An actor and a critic that drive a lift: people wait on the floors, and waiting costs."""
import os
from dataclasses import dataclass

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf

FLOORS = 5
DOWN, STAY, UP = range(3)


@dataclass(frozen=True)
class Settings:
    shafts: int = 8
    moves: int = 12
    rounds: int = 8
    discount: float = 0.9
    entropy: float = 0.02
    rate: float = 0.03
    forget: float = 0.2

    @property
    def batch(self):
        return self.shafts * self.moves


class Building:
    """Several shafts that are simulated side by side."""

    def __init__(self, shafts, seed):
        self.rng = np.random.default_rng(seed)
        self.at = self.rng.integers(0, FLOORS, shafts)
        self.waiting = self.rng.random((shafts, FLOORS)) < 0.3

    def state(self):
        return np.concatenate([np.eye(FLOORS)[self.at], self.waiting], axis=1).astype("float32")

    def move(self, action):
        self.at = np.clip(self.at + action - 1, 0, FLOORS - 1)
        shafts = np.arange(len(self.at))
        picked = self.waiting[shafts, self.at] & (action == STAY)
        self.waiting[shafts, self.at] &= ~picked
        reward = 2.0 * picked - 0.3 * self.waiting.sum(1)
        self.waiting |= self.rng.random(self.waiting.shape) < 0.06
        return reward


class Driver(keras.Model):
    def __init__(self):
        super().__init__()
        self.body = keras.layers.Dense(24, activation="tanh")
        self.actor = keras.layers.Dense(3, kernel_initializer="zeros")
        self.critic = keras.layers.Dense(1)

    def call(self, state):
        seen = self.body(state)
        return self.actor(seen), self.critic(seen)[:, 0]


class Learner:
    def __init__(self, settings):
        self.settings = settings
        self.strategy = tf.distribute.MirroredStrategy()
        with self.strategy.scope():
            self.driver = Driver()
            self.driver(np.zeros((1, 2 * FLOORS), "float32"))
            self.optimizer = keras.optimizers.SGD(settings.rate, momentum=0.8)
            self.optimizer.build(self.driver.trainable_variables)
            # the running size of returns keeps the critic's error in units that do not change
            self.spread = tf.Variable(4.0, trainable=False, aggregation=tf.VariableAggregation.MEAN)
        self.building = Building(settings.shafts, seed=12)
        self.dice = np.random.default_rng(13)

    def drive(self):
        """Returns what the shafts have seen and done, with returns and advantages."""
        states, actions, rewards, values = [], [], [], []
        for _ in range(self.settings.moves):
            state = self.building.state()
            logits, value = self.driver(state)
            likely = np.cumsum(tf.nn.softmax(logits).numpy(), axis=1)
            action = np.minimum((self.dice.random((len(state), 1)) > likely).sum(1), UP)
            states.append(state)
            actions.append(action)
            values.append(value.numpy())
            rewards.append(self.building.move(action))
        later = self.driver(self.building.state())[1].numpy()
        returns = np.zeros((self.settings.moves, self.settings.shafts))
        for t in reversed(range(self.settings.moves)):
            later = returns[t] = rewards[t] + self.settings.discount * later
        advantage = (returns - np.array(values)).reshape(-1)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-3)
        moments = (np.concatenate(states), np.concatenate(actions).astype("int32"),
                   returns.reshape(-1).astype("float32"), advantage.astype("float32"))
        return moments, float(np.mean(rewards))

    def learn_from(self, state, action, returned, advantage):
        settings = self.settings
        self.spread.assign_add(settings.forget * (tf.reduce_mean(returned**2) - self.spread))
        with tf.GradientTape() as tape:
            logits, value = self.driver(state, training=True)
            log_likely = tf.nn.log_softmax(logits)
            taken = tf.gather(log_likely, action, batch_dims=1)
            entropy = -tf.reduce_sum(tf.exp(log_likely) * log_likely, axis=1)
            actor = -taken * advantage
            critic = 0.5 * (returned - value) ** 2 / self.spread
            each = actor + critic - settings.entropy * entropy
            loss = tf.nn.compute_average_loss(each, global_batch_size=settings.batch)
        weights = self.driver.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss, tf.reduce_sum(entropy) / settings.batch

    @tf.function
    def step(self, *moments):
        shares = self.strategy.run(self.learn_from, args=moments)
        return [self.strategy.reduce("SUM", share, axis=None) for share in shares]

    def round(self):
        moments, reward = self.drive()
        data = tf.data.Dataset.from_tensor_slices(moments).batch(self.settings.batch)
        for batch in self.strategy.experimental_distribute_dataset(data):
            loss, entropy = self.step(*batch)
        return float(loss), float(entropy), reward


def main():
    keras.utils.set_random_seed(5)
    settings = Settings()
    learner = Learner(settings)
    told = []
    for number in range(1, settings.rounds + 1):
        told.append(learner.round())
        print("round {}: loss {:.4f}, entropy {:.4f}, reward {:.4f}".format(number, *told[-1]), flush=True)
    size = sum(float(np.abs(weight.numpy()).sum()) for weight in learner.driver.trainable_variables)
    print(f"loss {told[-1][0]:.4f} entropy {told[-1][1]:.4f} reward {np.mean([each[2] for each in told]):.4f}"
          f" spread {float(learner.spread.numpy()):.4f} weights {size:.4f}")


if __name__ == "__main__":
    main()
