"""Shared trunk with two heads; the tasks' shares of the loss follow their size."""
import keras
import tensorflow as tf

from .table import CODES, NUMBERS


class LogCosh(keras.losses.Loss):
    """Quadratic for small errors, linear for large ones."""

    def call(self, y_true, y_pred):
        error = y_true - y_pred
        return tf.reduce_mean(error + tf.math.softplus(-2.0 * error) - tf.math.log(2.0), axis=-1)


class RelativeSpread(keras.metrics.Metric):
    """Root of the mean squared error over the mean amount, for all claims seen."""

    def __init__(self, name="spread", **kwargs):
        super().__init__(name=name, **kwargs)
        self.squares = self.add_weight(name="squares", initializer="zeros")
        self.amounts = self.add_weight(name="amounts", initializer="zeros")
        self.claims = self.add_weight(name="claims", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.squares.assign_add(tf.reduce_sum(tf.square(y_true - y_pred)))
        self.amounts.assign_add(tf.reduce_sum(y_true))
        self.claims.assign_add(tf.cast(tf.size(y_true), tf.float32))

    def result(self):
        mean = self.amounts / tf.maximum(self.claims, 1.0)
        return tf.sqrt(self.squares / tf.maximum(self.claims, 1.0)) / tf.maximum(mean, 1e-3)


class ClaimsModel(keras.Model):
    def __init__(self, dim=6, units=24):
        super().__init__(name="claims")
        self.code = keras.layers.Embedding(CODES, dim)
        self.join = keras.layers.Concatenate()
        self.trunk = [keras.layers.Dense(units, activation="relu") for _ in range(2)]
        self.fraud = keras.layers.Dense(1)
        self.amount = keras.layers.Dense(1)
        self.share = self.add_weight(name="share", shape=(2,), initializer="ones", trainable=False)

    def call(self, inputs):
        x = self.join([inputs["numbers"], self.code(inputs["code"])])
        for layer in self.trunk:
            x = layer(x)
        return {"fraud": self.fraud(x), "amount": self.amount(x)}

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        share = tf.unstack(tf.convert_to_tensor(self.share))
        parts = {
            "fraud": self.fraud_loss(y["fraud"], y_pred["fraud"]),
            "amount": self.amount_loss(y["amount"], y_pred["amount"]),
        }
        return share[0] * parts["fraud"] + share[1] * parts["amount"]

    def with_losses(self, fraud, amount):
        self.fraud_loss, self.amount_loss = fraud, amount
        return self


def example_inputs():
    return {"numbers": tf.zeros((1, NUMBERS)), "code": tf.zeros((1,), tf.int32)}
