import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("glaze")
class Tint(keras.layers.Layer):
    """Shifts and stretches each band by a factor of its own."""

    def build(self, shape):
        self.stretch = self.add_weight(shape=(shape[-1],), initializer="ones", name="stretch")
        self.shift = self.add_weight(shape=(shape[-1],), initializer="zeros", name="shift")

    def call(self, x):
        return x * self.stretch + self.shift


@keras.saving.register_keras_serializable("glaze")
class GlazeVAE(keras.Model):
    def __init__(self, bands=16, latent=2, brightness=1.0, batch=32, **kwargs):
        super().__init__(**kwargs)
        self.bands, self.latent, self.brightness, self.batch = bands, latent, brightness, batch
        self.encoder = keras.Sequential([
            keras.Input((bands,)), keras.layers.Dense(24, "tanh"), keras.layers.Dense(2 * latent)])
        self.decoder = keras.Sequential([
            keras.Input((latent,)), keras.layers.Dense(24, "tanh"), keras.layers.Dense(bands, "tanh"), Tint()])
        self.loss_tracker = keras.metrics.Mean("loss")
        self.divergence_tracker = keras.metrics.Mean("divergence")

    def get_config(self):
        return {**super().get_config(), "bands": self.bands, "latent": self.latent, "brightness": self.brightness,
                "batch": self.batch}

    @property
    def metrics(self):
        return [self.loss_tracker, self.divergence_tracker]

    def call(self, x):
        mean, _ = tf.split(self.encoder(x), 2, -1)
        return self.brightness * self.decoder(mean)

    def parts(self, x, noise):
        """The squared error and the divergence of each example."""
        mean, log_variance = tf.split(self.encoder(x), 2, -1)
        drawn = mean + tf.exp(0.5 * log_variance) * noise
        errors = tf.reduce_sum(tf.square(x - self.brightness * self.decoder(drawn)), 1)
        divergences = 0.5 * tf.reduce_sum(tf.exp(log_variance) + tf.square(mean) - 1 - log_variance, 1)
        return errors, divergences

    def train_step(self, data):
        x, noise = data
        with tf.GradientTape() as tape:
            errors, divergences = self.parts(x, noise)
            losses = errors + 0.1 * divergences
            loss = tf.reduce_sum(losses) / self.batch  # the gradients of the replicas are added
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        self.loss_tracker.update_state(losses)
        self.divergence_tracker.update_state(divergences)
        return {metric.name: metric.result() for metric in self.metrics}
