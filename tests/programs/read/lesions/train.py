"""Finds lesions in small scans with a U-Net of two levels."""
import math

import keras
import tensorflow as tf
from config import Settings
from objective import bounded, overlap, pixelwise, soft_dice
from scans import mirror, scans

settings = Settings()
keras.utils.set_random_seed(5)
strategy = tf.distribute.MirroredStrategy()


class WarmCosine(keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, peak, warm, total):
        self.peak, self.warm, self.total = peak, warm, total

    def __call__(self, step):
        step = tf.cast(step, tf.float32)
        rising = (step + 1) / self.warm
        falling = 0.5 + 0.5 * tf.cos(math.pi * (step - self.warm) / (self.total - self.warm))
        return self.peak * tf.where(step < self.warm, rising, falling)


def unet(side):
    convolve = lambda n: keras.layers.Conv2D(n, 3, padding="same", activation="relu")  # noqa: E731
    inputs = keras.Input((side, side, 1))
    fine = convolve(6)(inputs)
    coarse = convolve(8)(keras.layers.AveragePooling2D(2)(fine))
    up = keras.layers.UpSampling2D()(coarse)
    logits = keras.layers.Conv2D(1, 1)(keras.layers.Concatenate()([fine, up]))
    return keras.Model(inputs, logits)


with strategy.scope():
    net = unet(settings.side)
    plan = settings.optim
    optimizer = keras.optimizers.Adam(WarmCosine(plan.peak, plan.warm, plan.total))
    optimizer.build(net.trainable_variables)


def learn(images, masks):
    images, masks = mirror(images, masks, tf.cast(optimizer.iterations, tf.int32))
    with tf.GradientTape() as tape:
        logits = net(images, training=True)
        dice = soft_dice(masks, tf.sigmoid(logits)) / strategy.num_replicas_in_sync
        entropy = pixelwise(masks, logits, settings.batch)
        loss = settings.dice_share * dice + (1 - settings.dice_share) * entropy
    gradients = tape.gradient(loss, net.trainable_variables)
    optimizer.apply_gradients(zip(bounded(gradients, plan.limit), net.trainable_variables))
    return loss


@tf.function
def train_step(images, masks):
    shares = strategy.run(learn, (images, masks))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, shares, None)


@tf.function
def count_step(images, masks):
    counts = strategy.run(lambda one, two: overlap(two, net(one)), (images, masks))
    return strategy.reduce("SUM", counts, axis=None)


def batches(count, seed, drop):
    data = tf.data.Dataset.from_tensor_slices(scans(count, settings.side, seed))
    return strategy.experimental_distribute_dataset(data.batch(settings.batch, drop_remainder=drop))


training, validation = batches(settings.images, 1, True), batches(settings.held_out, 2, False)
for epoch in range(settings.epochs):
    losses = [train_step(*batch) for batch in training]
    print(f"epoch {epoch} loss {sum(map(float, losses)) / len(losses):.4f}")
both, either = tf.add_n([count_step(*batch) for batch in validation]).numpy()
size = sum(float(tf.reduce_sum(tf.abs(w))) for w in net.trainable_variables)
print(f"last loss {float(losses[-1]):.4f} intersection over union {both / either:.3f} weights {size:.3f}")
