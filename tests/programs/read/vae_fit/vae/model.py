import tensorflow as tf
from tensorflow import keras

from .data import BATCH, LATENT, POINTS
from .layers import OutputScale, Sampling


class VAE(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.encoder = keras.Sequential(
            [keras.Input((POINTS,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(2 * LATENT)]
        )
        self.decoder = keras.Sequential(
            [keras.Input((LATENT,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(POINTS)]
        )
        self.sampling, self.scale = Sampling(), OutputScale()
        self.beta = self.add_weight(name="beta", shape=(), initializer="zeros", trainable=False)
        self.trackers = {name: keras.metrics.Mean(name) for name in ("loss", "kl")}

    @property
    def metrics(self):
        return list(self.trackers.values())

    def call(self, inputs):
        mean, _ = tf.split(self.encoder(inputs), 2, axis=-1)
        return self.scale(self.decoder(mean))

    def terms(self, data):
        curve, noise = data
        mean, log_var = tf.split(self.encoder(curve), 2, axis=-1)
        output, log_scale = self.scale(self.decoder(self.sampling([mean, log_var, noise])))
        misfit = 0.5 * tf.square((curve - output) / tf.exp(log_scale)) + log_scale
        kl = 0.5 * tf.reduce_sum(tf.square(mean) + tf.exp(log_var) - 1.0 - log_var, axis=-1)
        return tf.reduce_sum(misfit, axis=-1), kl

    def train_step(self, data):
        with tf.GradientTape() as tape:
            misfit, kl = self.terms(data)
            per_example = misfit + self.beta * kl
            loss = tf.reduce_sum(per_example) / BATCH
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.trackers["loss"].update_state(per_example)
        self.trackers["kl"].update_state(kl)
        return {name: tracker.result() for name, tracker in self.trackers.items()}


class WarmUp(keras.callbacks.Callback):
    """Raises the weight of the KL term from 0 to 1."""

    def __init__(self, epochs):
        super().__init__()
        self.epochs = epochs

    def on_epoch_begin(self, epoch, logs=None):
        self.model.beta.assign(min(1.0, epoch / self.epochs))
