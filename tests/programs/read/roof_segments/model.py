import keras
import tensorflow as tf
from keras import layers


def block(x, filters):
    x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization(momentum=0.8, synchronized=True)(x)
    return layers.ReLU()(x)


def dice_loss(masks, probabilities):
    """One minus the overlap, for each image."""
    both = tf.reduce_sum(masks * probabilities, axis=(1, 2, 3))
    either = tf.reduce_sum(masks + probabilities, axis=(1, 2, 3))
    return 1.0 - (2.0 * both + 1.0) / (either + 1.0)


class RoofNet(keras.Model):
    """A U of two levels whose loss is half cross-entropy and half dice."""

    def __init__(self, *args, batch_size=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.batch_size = batch_size
        self.objective = keras.metrics.Mean(name="objective")

    def losses_of_images(self, masks, probabilities):
        pixels = keras.losses.binary_crossentropy(masks, probabilities)
        return 0.5 * tf.reduce_mean(pixels, axis=(1, 2)) + 0.5 * dice_loss(masks, probabilities)

    def train_step(self, data):
        images, masks = data
        with tf.GradientTape() as tape:
            each = self.losses_of_images(masks, self(images, training=True))
            loss = tf.reduce_sum(each) / self.batch_size
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.objective.update_state(each)
        return {"objective": self.objective.result()}

    def test_step(self, data):
        images, masks = data
        self.objective.update_state(self.losses_of_images(masks, self(images, training=False)))
        return {"objective": self.objective.result()}


def roof_net(side, batch_size):
    image = keras.Input((side, side, 3))
    high = block(image, 6)
    low = block(layers.MaxPooling2D()(high), 12)
    up = layers.Concatenate()([layers.UpSampling2D()(low), high])
    roof = layers.Conv2D(1, 1, activation="sigmoid")(block(up, 6))
    return RoofNet(image, roof, batch_size=batch_size)
