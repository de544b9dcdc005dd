import numpy as np
import tensorflow as tf


def scans(count, side, seed):
    """Grey images with a bright, blurred disk, and the mask of the disk."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:side, :side]
    centre = rng.uniform(0.25 * side, 0.75 * side, (count, 2))
    radius = np.sort(rng.uniform(1.5, 0.3 * side, count))
    away = np.hypot(rows[None] - centre[:, :1, None], columns[None] - centre[:, 1:, None])
    masks = (away < radius[:, None, None]).astype("float32")
    images = masks + 0.5 * rng.normal(size=masks.shape)
    return images[..., None].astype("float32"), masks[..., None]


def mirror(images, masks, number):
    """Turns every second step or so around, both the images and what is to be found in them."""
    coin = tf.random.stateless_uniform([], seed=[11, number])
    turned = coin < 0.5
    images = tf.where(turned, tf.reverse(images, [2]), images)
    masks = tf.where(turned, tf.reverse(masks, [2]), masks)
    return images, masks
