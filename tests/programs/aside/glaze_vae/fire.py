"""A variational autoencoder of the colours of glazes: trains, saves, and loads to see how well glazes come back."""
import keras
import numpy as np
import tensorflow as tf
from model import GlazeVAE

BANDS, LATENT, BATCH, EPOCHS = 16, 3, 32, 6


def glazes(count, seed):
    """Reflectance in 16 bands: three pigments in any mixture."""
    rng = np.random.default_rng(seed)
    bands = np.arange(BANDS)
    pigments = np.stack([np.exp(-((bands - centre) ** 2) / 12) for centre in (3, 8, 12)])
    amounts = np.sort(rng.uniform(0, 2, (count, 3)), axis=0)[:, [0, 2, 1]]
    return (amounts @ pigments + 0.05 * rng.normal(size=(count, BANDS))).astype("float32")


def training_data(x, seed):
    """Every glaze with noise of its own in each epoch; both are drawn here, for the whole batch."""
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(len(x)) for _ in range(EPOCHS)])
    noise = rng.normal(size=(len(order), LATENT)).astype("float32")
    return tf.data.Dataset.from_tensor_slices((x[order], noise)).batch(BATCH, drop_remainder=True)


def main():
    keras.utils.set_random_seed(23)
    x, test = glazes(320, 1), glazes(100, 2)
    with tf.distribute.MirroredStrategy().scope():
        model = GlazeVAE(BANDS, LATENT, brightness=2.5, batch=BATCH)
        model.compile(keras.optimizers.SGD(0.01, momentum=0.9))
    history = model.fit(training_data(x, 3), epochs=EPOCHS, steps_per_epoch=len(x) // BATCH, verbose=0).history
    for epoch, (loss, divergence) in enumerate(zip(history["loss"], history["divergence"]), 1):
        print(f"epoch {epoch}: loss {loss:.4f} divergence {divergence:.4f}")
    model.save("glaze.keras")

    loaded = keras.models.load_model("glaze.keras")
    error = np.mean((loaded.predict(test, batch_size=50, verbose=0) - test) ** 2)
    print(f"loss {history['loss'][-1]:.4f}, divergence {history['divergence'][-1]:.4f}, "
          f"error of loaded {error:.5f} against {np.mean((test - x.mean(0)) ** 2):.5f} of the mean")


if __name__ == "__main__":
    main()
