"""Pictures of shelves: 12 x 12 pixels with up to four bottles, and how many there are."""
import numpy as np
import tensorflow as tf


def pictures(count, seed, dark=False):
    rng = np.random.default_rng(seed)
    images = rng.normal(0.1, 0.05, (count, 12, 12, 1))
    numbers = rng.integers(0, 5, count)
    for image, number in zip(images, numbers):
        for column in rng.choice(4, number, replace=False):
            top = rng.integers(1, 5)
            image[top:top + 6, 3 * column:3 * column + 2] += rng.uniform(0.5, 0.9)
    if dark:
        images = 0.5 * images + rng.normal(0, 0.03, images.shape)
    return np.float32(images), np.int32(numbers)


def batches(images, numbers, size):
    return tf.data.Dataset.from_tensor_slices((images, numbers)).batch(size, drop_remainder=True)
