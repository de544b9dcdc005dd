import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="menu")
class WordBag(keras.layers.Layer):
    """The mean of the vectors of all words, rare ones with more weight: 1 / (1 + frequency * sharpness)."""

    def __init__(self, words, units, frequencies, sharpness=0.0, seed=0, **options):
        super().__init__(**options)
        self.words, self.units, self.seed = words, units, seed
        self.frequencies, self.sharpness = [float(each) for each in frequencies], sharpness

    def build(self, shape):
        self.vectors = self.add_weight(
            name="vectors", shape=(self.words, self.units),
            initializer=keras.initializers.RandomNormal(0, 0.3, seed=self.seed))

    def call(self, ids):
        weight = 1 / (1 + tf.constant(self.frequencies) * self.sharpness)
        weight = tf.gather(weight, ids) * tf.cast(ids > 0, tf.float32)
        total = tf.reduce_sum(weight[..., None] * tf.gather(self.vectors, ids), 1)
        return total / tf.maximum(tf.reduce_sum(weight, 1, keepdims=True), 1e-6)

    def compute_output_shape(self, shape):
        return (shape[0], self.units)

    def get_config(self):
        return {**super().get_config(), "words": self.words, "units": self.units,
                "frequencies": self.frequencies, "sharpness": self.sharpness, "seed": self.seed}
