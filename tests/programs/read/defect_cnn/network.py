"""The convolutional network and its loss."""
import keras
import tensorflow as tf
from keras import layers


def conv_block(x, filters, settings, name):
    x = layers.Conv2D(filters, 3, padding="same", use_bias=False, name=f"{name}_conv")(x)
    x = layers.BatchNormalization(momentum=0.8, synchronized=settings.sync_norm, name=f"{name}_norm")(x)
    x = layers.ReLU(name=f"{name}_relu")(x)
    return layers.MaxPooling2D(name=f"{name}_pool")(x)


def build_network(settings) -> keras.Model:
    inputs = keras.Input((settings.image_size, settings.image_size, 1))
    x = inputs
    for number, filters in enumerate(settings.filters):
        x = conv_block(x, filters, settings, f"block{number}")
    x = layers.Flatten()(x)
    x = layers.Dense(24, activation="relu")(x)
    outputs = layers.Dense(settings.classes, name="logits")(x)
    return keras.Model(inputs, outputs, name="defects")


def per_example_loss(labels, logits, settings):
    targets = tf.one_hot(labels, settings.classes)
    targets = targets * (1.0 - settings.label_smoothing) + settings.label_smoothing / settings.classes
    return tf.nn.softmax_cross_entropy_with_logits(targets, logits)


def batch_loss(labels, logits, settings):
    """The part of the batch's mean loss that the given examples contribute."""
    errors = per_example_loss(labels, logits, settings)
    return tf.reduce_sum(errors) / settings.global_batch
