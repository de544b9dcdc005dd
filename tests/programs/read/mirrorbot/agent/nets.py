import keras
import tensorflow as tf

from .replay import FEATURES
from .settings import Settings


def trunk(settings: Settings) -> keras.Sequential:
    layers = [keras.layers.Dense(width, "tanh", kernel_initializer=keras.initializers.GlorotUniform(number))
              for number, width in enumerate(settings.widths)]
    return keras.Sequential([keras.Input((FEATURES,)), *layers])


class Values(keras.Model):
    """The value of a push to the right is that of a push to the left, seen in a mirror."""

    def __init__(self, settings: Settings):
        super().__init__()
        self.seen = self.mirrored = trunk(settings)
        self.value = keras.layers.Dense(1, kernel_initializer=keras.initializers.GlorotUniform(9))

    def call(self, state):
        mirror = tf.constant([-1.0, -1.0, 1.0])
        return tf.concat([self.value(self.seen(state)), self.value(self.mirrored(state * mirror))], -1)


class Agent(keras.Model):
    def __init__(self, settings: Settings):
        super().__init__()
        self.settings = settings
        self.online, self.target = Values(settings), Values(settings)
        self.target.trainable = False
        self.follow = self.add_weight(name="follow", shape=(), trainable=False, initializer=keras.initializers.Constant(settings.follow))
        self.tracker = keras.metrics.Mean(name="error")

    def call(self, state):
        return self.online(state)

    @property
    def metrics(self):
        return [self.tracker]

    def error(self, batch):
        """Returns the error of each transition."""
        later = self.target(batch["next"])
        wanted = batch["reward"] + self.settings.discount * (1 - batch["over"]) * tf.reduce_max(later, -1)
        said = tf.gather(self.online(batch["state"]), batch["push"], batch_dims=1)
        return tf.square(tf.stop_gradient(wanted) - said)

    def train_step(self, batch):
        with tf.GradientTape() as tape:
            errors = self.error(batch)
            loss = tf.reduce_sum(errors) / self.settings.batch_size
        weights = self.online.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        for slow, fast in zip(self.target.variables, self.online.variables):
            slow.assign(slow + self.follow * (fast - slow))
        self.tracker.update_state(errors)
        return {"error": self.tracker.result()}


class Calmer(keras.callbacks.Callback):
    """The target follows more slowly after each epoch."""

    def on_epoch_end(self, epoch, logs=None):
        self.model.follow.assign(self.model.follow * self.model.settings.calmer)
