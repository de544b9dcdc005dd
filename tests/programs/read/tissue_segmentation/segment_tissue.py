#!/usr/bin/env python
"""Segmentation of nuclei in (simulated) tissue sections with a small U-shaped network.

The loss is a weighted cross-entropy of the pixels plus a soft Dice term for each image. The weight of the foreground follows
a moving average of its frequency. Validation uses an exponential moving average of the weights.

    python segment_tissue.py --epochs 5 --out runs/base
"""
import argparse
import os
import sys

import keras
import numpy as np
import tensorflow as tf
from keras import layers

ROOT = os.path.dirname(os.path.abspath(__file__))
SIZE = 16


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=16, help="images in one update, over all devices")
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--milestones", type=int, nargs="*", default=[1, 3], help="epochs at which the rate is divided")
    parser.add_argument("--divide", type=float, default=4.0)
    parser.add_argument("--dice", type=float, default=0.7, help="weight of the Dice term")
    parser.add_argument("--max-norm", type=float, default=0.5)
    parser.add_argument("--average", type=float, default=0.9, help="decay of the averaged weights")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--out", default="runs/base")
    return parser.parse_args(argv)


# ---------------------------------------------------------------- data

def simulate(count, seed):
    """Discs of differing size on a textured ground; every image has another share of foreground."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:SIZE, 0:SIZE]
    images = np.zeros((count, SIZE, SIZE, 1), "float32")
    masks = np.zeros((count, SIZE, SIZE, 1), "float32")
    for number in range(count):
        for _ in range(rng.integers(1, 4)):
            y, x = rng.uniform(2, SIZE - 2, size=2)
            masks[number, :, :, 0][(rows - y) ** 2 + (columns - x) ** 2 < rng.uniform(1.0, 4.5) ** 2] = 1.0
        texture = rng.normal(0, 0.5, size=(SIZE, SIZE))
        images[number, :, :, 0] = masks[number, :, :, 0] * rng.uniform(0.5, 1.2) + texture
    return images, masks


class Sections:

    def __init__(self, strategy, args):
        self.strategy, self.args = strategy, args
        self.train_images, self.train_masks = simulate(80, args.seed)
        self.valid = simulate(27, args.seed + 100)

    def training(self, epoch):
        order = np.random.default_rng([self.args.seed, epoch]).permutation(len(self.train_images))
        data = tf.data.Dataset.from_tensor_slices((self.train_images[order], self.train_masks[order]))
        data = data.batch(self.args.batch, drop_remainder=True)
        return self.strategy.experimental_distribute_dataset(data)

    def validation(self):
        data = tf.data.Dataset.from_tensor_slices(self.valid).batch(self.args.batch)
        return self.strategy.experimental_distribute_dataset(data)


# ---------------------------------------------------------------- model

def double_conv(x, filters):
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.GroupNormalization(groups=2)(x)
        x = layers.Activation("relu")(x)
    return x


def small_unet():
    inputs = keras.Input((SIZE, SIZE, 1))
    fine = double_conv(inputs, 4)
    coarse = double_conv(layers.MaxPooling2D()(fine), 8)
    up = layers.UpSampling2D()(coarse)
    merged = double_conv(layers.Concatenate()([fine, up]), 4)
    return keras.Model(inputs, layers.Conv2D(1, 1, name="logit")(merged))


def soft_dice(masks, probabilities):
    """One minus the Dice coefficient of each image."""
    axes = [1, 2, 3]
    overlap = tf.reduce_sum(masks * probabilities, axis=axes)
    total = tf.reduce_sum(masks, axis=axes) + tf.reduce_sum(probabilities, axis=axes)
    return 1.0 - (2.0 * overlap + 1.0) / (total + 1.0)


# ---------------------------------------------------------------- training

class Segmentation:

    def __init__(self, args):
        self.args = args
        self.strategy = tf.distribute.MirroredStrategy()
        self.sections = Sections(self.strategy, args)
        with self.strategy.scope():
            self.model = small_unet()
            self.optimizer = keras.optimizers.SGD(args.rate, momentum=0.9)
            self.optimizer.build(self.model.trainable_variables)
            self.foreground = tf.Variable(0.3, trainable=False, aggregation=tf.VariableAggregation.MEAN, name="foreground")
        self.averaged = [tf.Variable(w, trainable=False) for w in self.model.get_weights()]
        self.epoch = tf.Variable(0, dtype=tf.int64)
        self.checkpoint = tf.train.Checkpoint(
            model=self.model, optimizer=self.optimizer, foreground=self.foreground,
            averaged=self.averaged, epoch=self.epoch)
        self.manager = tf.train.CheckpointManager(
            self.checkpoint, os.path.join(ROOT, args.out, "state"), max_to_keep=3)

    def loss(self, masks, logits):
        """The loss of every image of the replica, divided by the images of all replicas."""
        weight = 1.0 + masks * (1.0 / tf.maximum(self.foreground, 0.05) - 1.0)
        pixels = tf.nn.sigmoid_cross_entropy_with_logits(masks, logits) * weight
        pixels = tf.reduce_mean(pixels, axis=[1, 2, 3])
        images = pixels + self.args.dice * soft_dice(masks, tf.sigmoid(logits))
        return tf.nn.compute_average_loss(images, global_batch_size=self.args.batch)

    def replica_step(self, images, masks):
        context = tf.distribute.get_replica_context()
        with tf.GradientTape() as tape:
            loss = self.loss(masks, self.model(images, training=True))
        variables = self.model.trainable_variables
        gradients = context.all_reduce("sum", tape.gradient(loss, variables))
        gradients, _ = tf.clip_by_global_norm(gradients, self.args.max_norm)
        # apply_gradients adds up over the replicas once more
        gradients = [g / context.num_replicas_in_sync for g in gradients]
        self.optimizer.apply_gradients(zip(gradients, variables))
        self.foreground.assign(0.8 * self.foreground + 0.2 * tf.reduce_mean(masks))
        return loss

    @tf.function
    def train_step(self, images, masks):
        losses = self.strategy.run(self.replica_step, args=(images, masks))
        return self.strategy.reduce("SUM", losses, axis=None)

    @tf.function
    def count_step(self, images, masks):
        def count(images, masks):
            found = tf.cast(self.model(images, training=False) > 0.0, tf.float32)
            return tf.reduce_sum(found * masks), tf.reduce_sum(tf.maximum(found, masks))
        both, either = self.strategy.run(count, args=(images, masks))
        return self.strategy.reduce("SUM", both, axis=None), self.strategy.reduce("SUM", either, axis=None)

    def average_weights(self):
        decay = self.args.average
        for kept, value in zip(self.averaged, self.model.get_weights()):
            kept.assign(decay * kept + (1.0 - decay) * value)

    def intersection_over_union(self):
        """Of all pixels of the validation set, with the averaged weights."""
        current = self.model.get_weights()
        self.model.set_weights([kept.numpy() for kept in self.averaged])
        both = either = 0.0
        for images, masks in self.sections.validation():
            inside, around = self.count_step(images, masks)
            both, either = both + float(inside), either + float(around)
        self.model.set_weights(current)
        return both / either

    def rate_of(self, epoch):
        passed = sum(epoch >= milestone for milestone in self.args.milestones)
        return self.args.rate / self.args.divide ** passed

    def restore(self):
        if self.manager.latest_checkpoint:
            self.checkpoint.restore(self.manager.latest_checkpoint)
            print("restored", os.path.basename(self.manager.latest_checkpoint))

    def fit(self):
        self.restore()
        for epoch in range(int(self.epoch.numpy()), self.args.epochs):
            self.optimizer.learning_rate.assign(self.rate_of(epoch))
            losses = []
            for images, masks in self.sections.training(epoch):
                losses.append(self.train_step(images, masks))
                self.average_weights()
            self.epoch.assign(epoch + 1)
            self.manager.save()
            print(f"[{epoch + 1:2d}] loss {float(np.mean(losses)):.5f}  rate {self.rate_of(epoch):.5f}  "
                  f"IoU {self.intersection_over_union():.4f}")

    def report(self):
        weights = sum(float(np.abs(w).sum()) for w in self.model.get_weights())
        averaged = sum(float(tf.reduce_sum(tf.abs(w))) for w in self.averaged)
        print(f"finally: IoU {self.intersection_over_union():.5f} weights {weights:.5f} averaged {averaged:.5f} "
              f"foreground {float(self.foreground.numpy()):.6f}")


def main(argv=None):
    args = parse(argv)
    keras.utils.set_random_seed(args.seed)
    run = Segmentation(args)
    print(f"{run.model.count_params()} weights, {run.strategy.num_replicas_in_sync} devices")
    run.fit()
    run.report()


if __name__ == "__main__":
    sys.exit(main())
