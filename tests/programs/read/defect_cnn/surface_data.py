"""Synthetic pictures of metal sheets: scratches, pits, stains, and sheets without a defect."""
import numpy as np
import tensorflow as tf


def draw_sheets(count: int, size: int, seed: int):
    rng = np.random.default_rng(seed)
    images = rng.normal(0.0, 0.55, size=(count, size, size, 1)).astype("float32")
    labels = rng.integers(0, 4, size=count).astype("int32")
    for image, label in zip(images, labels):
        row, column = rng.integers(2, size - 3, size=2)
        if label == 1:      # scratch: a bright line
            image[row, :, 0] += 1.1
        elif label == 2:    # pits: some dark points
            rows, columns = rng.integers(0, size, size=(2, 7))
            image[rows, columns, 0] -= 2.0
        elif label == 3:    # stain: a brighter square
            image[row - 2:row + 3, column - 2:column + 3, 0] += 0.8
    flipped = rng.random(count) < 0.1   # the annotators are not always right
    labels[flipped] = rng.integers(0, 4, size=flipped.sum())
    return images, labels


class SheetPipeline:
    """Batches for training (in another order in every epoch) and for validation."""

    def __init__(self, settings, strategy):
        self.settings = settings
        self.strategy = strategy
        self.train = draw_sheets(settings.train_images, settings.image_size, settings.seed)
        self.valid = draw_sheets(settings.valid_images, settings.image_size, settings.seed + 1)

    def _augment(self, epoch):
        def apply(index, image, label):
            image = tf.image.stateless_random_flip_left_right(image, seed=tf.stack([index, epoch]))
            shift = tf.random.stateless_uniform([], seed=tf.stack([index + 7919, epoch]), minval=-0.1, maxval=0.1)
            return image + shift, label
        return apply

    def for_epoch(self, epoch: int):
        images, labels = self.train
        indices = np.arange(len(labels), dtype="int32")
        data = tf.data.Dataset.from_tensor_slices((indices, images, labels))
        data = data.shuffle(len(labels), seed=self.settings.seed + 31 * epoch)
        data = data.map(self._augment(tf.constant(epoch, tf.int32)))
        data = data.batch(self.settings.global_batch, drop_remainder=True).prefetch(2)
        return self.strategy.experimental_distribute_dataset(data)

    def for_validation(self):
        data = tf.data.Dataset.from_tensor_slices(self.valid).batch(self.settings.global_batch)
        return self.strategy.experimental_distribute_dataset(data)
