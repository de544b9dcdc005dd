"""Double DQN on all devices of a strategy."""
import keras
import tensorflow as tf


def q_network(actions=4, seed=0):
    layers = [keras.Input((6,))]
    for n, width in enumerate((32, 24)):
        layers.append(keras.layers.Dense(width, activation="tanh", kernel_initializer=keras.initializers.GlorotUniform(seed=seed + n)))
    layers.append(keras.layers.Dense(actions, kernel_initializer=keras.initializers.GlorotUniform(seed=seed + 9)))
    return keras.Sequential(layers)


def huber(error, delta=1.0):
    size = tf.abs(error)
    return tf.where(size < delta, 0.5 * tf.square(error), delta * (size - 0.5 * delta))


class Learner(tf.Module):
    def __init__(self, strategy, config):
        super().__init__()
        self.strategy = strategy
        self.config = config
        with strategy.scope():
            self.online = q_network(seed=1)
            self.target = q_network(seed=1)
            self.optimizer = keras.optimizers.SGD(config.learning_rate, momentum=0.9)
            self.optimizer.build(self.online.trainable_variables)
            self.updates = tf.Variable(0, dtype=tf.int64, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
            self.reward_scale = tf.Variable(1.0, trainable=False)

    def trackables(self):
        return {"online": self.online, "target": self.target, "optimizer": self.optimizer,
                "updates": self.updates, "reward_scale": self.reward_scale}

    def _loss(self, each):
        return tf.reduce_sum(each) / self.config.batch

    def _replica(self, before, action, reward, after, ended):
        choice = tf.argmax(self.online(after), axis=-1)
        future = tf.gather(self.target(after), choice, batch_dims=1)
        goal = reward / self.reward_scale + self.config.discount * (1.0 - ended) * future
        with tf.GradientTape() as tape:
            value = tf.gather(self.online(before), action, batch_dims=1)
            loss = self._loss(huber(tf.stop_gradient(goal) - value))
        weights = self.online.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        self.updates.assign_add(1)
        return loss

    @tf.function
    def _update(self, batch):
        return self.strategy.reduce("SUM", self.strategy.run(self._replica, args=batch), axis=None)

    def update(self, batch):
        """`batch` are NumPy columns of the global batch."""
        data = tf.data.Dataset.from_tensors(batch).unbatch().batch(self.config.batch)
        loss = None
        for share in self.strategy.experimental_distribute_dataset(data):
            loss = float(self._update(share))
        if int(self.updates.numpy()) % self.config.sync_every == 0:
            self.sync()
        return loss

    def sync(self):
        for to, source in zip(self.target.variables, self.online.variables):
            to.assign(source.numpy())

    def adapt(self, mean_size):
        """Rewards are divided by a slowly moving mean of their size."""
        self.reward_scale.assign(0.9 * self.reward_scale + 0.1 * mean_size)

    @tf.function
    def _greedy(self, observation):
        return tf.argmax(self.online(observation), axis=-1)

    def act(self, observation):
        return int(self._greedy(observation[None])[0])
