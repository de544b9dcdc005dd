import keras
import tensorflow as tf

register = keras.saving.register_keras_serializable("reviews")


@register
class Pooling(keras.layers.Layer):
    """The mean of the words, without the empty places."""

    def __init__(self, floor=1e-6, **kwargs):
        super().__init__(**kwargs)
        self.floor = floor

    def weights_of(self, vectors, there):
        return there

    def call(self, vectors, ids):
        there = tf.cast(ids > 0, vectors.dtype)
        share = self.weights_of(vectors, there) * there
        total = tf.reduce_sum(share, axis=1, keepdims=True) + self.floor
        return tf.einsum("blw,bl->bw", vectors, share / total)

    def compute_output_shape(self, vectors_shape, ids_shape):
        return vectors_shape[0], vectors_shape[2]

    def get_config(self):
        return {**super().get_config(), "floor": self.floor}


@register
class AttentivePooling(Pooling):
    """Words count more the more they agree with a query."""

    def __init__(self, temperature=1.0, **kwargs):
        super().__init__(**kwargs)
        self.temperature = temperature

    def build(self, vectors_shape, ids_shape):
        self.query = self.add_weight(name="query", shape=(vectors_shape[-1],), initializer=keras.initializers.RandomNormal(0, 0.3, seed=5))

    def weights_of(self, vectors, there):
        return tf.exp(tf.einsum("blw,w->bl", vectors, tf.convert_to_tensor(self.query)) / self.temperature)

    def get_config(self):
        return {**super().get_config(), "temperature": self.temperature}


@register
class F1(keras.metrics.Metric):
    def __init__(self, name="f1", **kwargs):
        super().__init__(name=name, **kwargs)
        self.hits = self.add_weight(name="hits", initializer="zeros")
        self.named = self.add_weight(name="named", initializer="zeros")

    def update_state(self, labels, logits, sample_weight=None):
        said = tf.cast(logits > 0, tf.float32)
        self.hits.assign_add(2 * tf.reduce_sum(said * labels))
        self.named.assign_add(tf.reduce_sum(said) + tf.reduce_sum(labels))

    def result(self):
        return self.hits / (self.named + 1e-6)


def penalised(strength):
    """Cross entropy, with a price for logits that are too sure."""

    def loss(labels, logits):
        entropy = keras.losses.binary_crossentropy(labels, logits, from_logits=True)
        return entropy + strength * tf.reduce_mean(tf.square(logits), axis=-1)

    return loss


def make(config, table):
    ids = keras.Input((config["length"],), dtype="int32")
    embedding = keras.layers.Embedding(*table.shape, weights=[table], trainable=False, name="words")
    pooled = AttentivePooling(config["temperature"], name="pooling")(embedding(ids), ids)
    hidden = keras.layers.Dense(10, "tanh", kernel_initializer=keras.initializers.GlorotUniform(6))(pooled)
    return keras.Model(ids, keras.layers.Dense(1, kernel_initializer=keras.initializers.GlorotUniform(7))(hidden))


def thaw(model):
    for layer in model.layers:
        layer.trainable = True
