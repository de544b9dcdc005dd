"""The network and how it is trained."""
import keras
import tensorflow as tf

from soil.data import DEPTHS, WEATHER


@keras.saving.register_keras_serializable("soil")
class Ramp(keras.layers.Layer):
    """A ramp from 0 to 1 that is `width` wide; its middle is learned for each unit."""

    def __init__(self, width=1.0, **kwargs):
        super().__init__(**kwargs)
        self.width = width

    def build(self, shape):
        self.middle = self.add_weight(name="middle", shape=(shape[-1],), initializer="zeros")
        super().build(shape)

    def call(self, inputs):
        return tf.sigmoid(4.0 * (inputs - self.middle) / self.width)

    def get_config(self):
        return {**super().get_config(), "width": self.width}


@keras.saving.register_keras_serializable("soil")
class SoilModel(keras.Model):
    """Errors count less the deeper they are: depth d has the weight `depth_weight ** d`."""

    def __init__(self, hidden=16, depth_weight=1.0, ramp=1.0, **kwargs):
        super().__init__(**kwargs)
        self.settings = {"hidden": hidden, "depth_weight": depth_weight, "ramp": ramp}
        draw = lambda seed: keras.initializers.GlorotUniform(seed=seed)  # noqa: E731
        self.body = keras.Sequential([
            keras.layers.Dense(hidden, kernel_initializer=draw(1)), Ramp(ramp),
            keras.layers.Dense(hidden, kernel_initializer=draw(2)), Ramp(ramp),
            keras.layers.Dense(DEPTHS, activation="sigmoid", kernel_initializer=draw(3))])
        self.weights_of_depths = [depth_weight ** depth for depth in range(DEPTHS)]
        self.error = keras.metrics.Mean(name="error")
        self.top = keras.metrics.RootMeanSquaredError(name="top")

    def build(self, shape=(None, WEATHER)):
        self.body.build(shape)
        self.built = True

    def get_config(self):
        return {**super().get_config(), **self.settings}

    def call(self, weather):
        return self.body(weather)

    @property
    def metrics(self):
        return [self.error, self.top]

    def errors(self, moisture, predicted):
        """One number for each station."""
        squares = tf.square(moisture - predicted) * tf.constant(self.weights_of_depths)
        return tf.reduce_sum(squares, axis=-1)

    def note(self, moisture, predicted, errors):
        self.error.update_state(errors)
        self.top.update_state(moisture[:, 0], predicted[:, 0])
        return {metric.name: metric.result() for metric in self.metrics}

    def train_step(self, batch):
        weather, moisture = batch
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        with tf.GradientTape() as tape:
            predicted = self(weather, training=True)
            errors = self.errors(moisture, predicted)
            loss = tf.reduce_mean(errors) / replicas
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return self.note(moisture, predicted, errors)

    def test_step(self, batch):
        weather, moisture = batch
        predicted = self(weather, training=False)
        return self.note(moisture, predicted, self.errors(moisture, predicted))
