"""Layers, losses and optimizers of our own, as people write them, for either version of Keras."""

from typing import Any

import numpy as np
import tensorflow as tf

from ..sizes import FEATURES


def multi_optimizer(keras: Any) -> Any:
    """Returns one optimizer for kernels and another one for biases."""

    def choose(variable: Any) -> Any:
        optimizers = keras.optimizers
        return optimizers.Adam(0.1) if "kernel" in variable.path else optimizers.SGD(0.1)

    return keras.optimizers.MultiOptimizer(choose)


# Losses


def loss_per_example(keras: Any) -> Any:
    return lambda wanted, found: tf.reduce_mean(tf.square(wanted - found), axis=-1)


def loss_of_one_number(keras: Any) -> Any:
    return lambda wanted, found: tf.reduce_mean(tf.square(wanted - found))


def in_batch_negatives(keras: Any) -> Any:
    """Returns a loss that compares each example with all others of its batch."""

    def loss(wanted: Any, found: Any) -> Any:
        near = tf.matmul(found, wanted, transpose_b=True)
        labels = tf.range(tf.shape(near)[0])
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, near)

    return loss


def LossOfOneNumber(keras: Any) -> Any:  # noqa: N802 - named as the class that it makes
    class OneNumber(keras.losses.Loss):  # type: ignore[misc]
        def call(self, wanted: Any, found: Any) -> Any:
            return tf.reduce_mean(tf.square(wanted - found))

    return OneNumber()


# Layers


def adapted_normalization(keras: Any, **named: Any) -> Any:
    layer = keras.layers.Normalization(**named)
    if "mean" not in named:
        layer.adapt(np.random.default_rng(6).normal(size=(20, FEATURES)).astype("float32"))
    return layer


def adapted_discretization(keras: Any, **named: Any) -> Any:
    layer = keras.layers.Discretization(num_bins=4, **named)
    layer.adapt(np.random.default_rng(6).normal(size=(20, FEATURES)).astype("float32"))
    return layer


def integer_lookup(keras: Any, **named: Any) -> Any:
    return keras.layers.IntegerLookup(vocabulary=[1, 2, 3, 4], **named)


def self_attention(keras: Any, **named: Any) -> Any:
    attention = keras.layers.MultiHeadAttention(1, 2, **named)
    return lambda x: attention(x, x)


def group_attention(keras: Any, **named: Any) -> Any:
    attention = keras.layers.GroupQueryAttention(2, 2, 1, **named)
    return lambda x: attention(x, x)


def masked_lstm(keras: Any, **named: Any) -> Any:
    masking, lstm = keras.layers.Masking(**named), keras.layers.LSTM(3)
    return lambda x: lstm(masking(x))


def AddsLoss(keras: Any, reduction: str) -> Any:  # noqa: N802
    reduce = {"sum": tf.reduce_sum, "mean": tf.reduce_mean}[reduction]

    class Adds(keras.layers.Layer):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            self.scale = self.add_weight(shape=(shape[-1],), initializer="ones", name="scale")
            self.built = True

        def call(self, x: Any) -> Any:
            scaled = x * self.scale
            self.add_loss(0.01 * reduce(tf.square(scaled)))
            return scaled

    return Adds()


def Counter(keras: Any) -> Any:  # noqa: N802
    class Counts(keras.layers.Layer):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            self.seen = self.add_weight(shape=(), trainable=False, initializer="zeros", name="seen")
            self.built = True

        def call(self, x: Any, training: bool = False) -> Any:
            if training:
                self.seen.assign(self.seen + tf.cast(tf.shape(x)[0], "float32"))
            return x

    return Counts()


def MovingAverage(keras: Any) -> Any:  # noqa: N802
    class Average(keras.layers.Layer):  # type: ignore[misc]
        def build(self, shape: Any) -> None:
            self.mean = self.add_weight(
                shape=(shape[-1],), trainable=False, initializer="zeros", name="mean"
            )
            self.built = True

        def call(self, x: Any, training: bool = False) -> Any:
            if training:
                self.mean.assign(0.9 * self.mean + 0.1 * tf.reduce_mean(x, axis=0))
            return x - self.mean

    return Average()


def WithMetric(keras: Any) -> Any:  # noqa: N802
    class Measures(keras.layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.size = keras.metrics.Mean(name="size")

        def call(self, x: Any) -> Any:
            self.size.update_state(tf.abs(x))
            return x

    return Measures()


# Callbacks


class Stop(Exception):
    """What an interrupted run ends with."""


def stop_after(keras: Any, steps: int) -> Any:
    class Stops(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            if int(self.model.optimizer.iterations.numpy()) == steps:
                raise Stop

    return Stops()


def halving(keras: Any) -> Any:
    return lambda epoch, rate: rate * 0.5


COUNTED: list[int] = []


def count_batches(keras: Any) -> Any:
    COUNTED.clear()
    return lambda batch, logs: COUNTED.append(batch)
