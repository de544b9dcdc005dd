"""Finds roofs in tiles of aerial images. Streets with many roofs come first, fields last."""
import keras
import numpy as np
import tensorflow as tf

from model import roof_net

SIDE, BATCH, EPOCHS = 12, 16, 4


def tiles(count, seed):
    rng = np.random.default_rng(seed)
    images = rng.normal(0, 0.5, (count, SIDE, SIDE, 3))
    masks = np.zeros((count, SIDE, SIDE, 1))
    for i in range(count):
        light = rng.uniform(0.4, 1.6) - 1.2 * i / count
        images[i] += light
        for _ in range(1 + 5 * (count - i) // count):
            top, left = rng.integers(0, SIDE - 4, 2)
            height, width = rng.integers(2, 5, 2)
            masks[i, top:top + height, left:left + width] = 1
        images[i, ..., 0] += 1.3 * masks[i, ..., 0]
    return images.astype("float32"), masks.astype("float32")


def noisy(number, tile):
    """The noise of a tile depends on its number in the epoch."""
    image, mask = tile
    noise = tf.random.stateless_normal(image.shape, seed=tf.stack([9, tf.cast(number, tf.int32)]))
    return image + 0.6 * noise, mask


def main():
    keras.utils.set_random_seed(9)
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = roof_net(SIDE, BATCH)
        model.compile(optimizer=keras.optimizers.SGD(0.1, momentum=0.5))

    train = tf.data.Dataset.from_tensor_slices(tiles(113, seed=1)).enumerate().map(noisy)
    train = train.batch(BATCH, drop_remainder=True)
    test = tf.data.Dataset.from_tensor_slices(tiles(48, seed=2)).batch(BATCH)
    fitted = model.fit(train, epochs=EPOCHS, validation_data=test, verbose=0).history
    for epoch in range(EPOCHS):
        print(f"{epoch + 1}: {fitted['objective'][epoch]:.4f} / {fitted['val_objective'][epoch]:.4f}")

    images, masks = tiles(48, seed=2)
    found = model.predict(images, batch_size=BATCH, verbose=0) > 0.5
    overlap = np.sum(found * masks) / np.sum(np.maximum(found, masks))
    print(f"objective {fitted['val_objective'][-1]:.5f} overlap {overlap:.4f}")


if __name__ == "__main__":
    main()
