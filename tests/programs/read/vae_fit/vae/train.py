import tensorflow as tf
from tensorflow import keras

from . import data
from .model import VAE, WarmUp

EPOCHS, TUNING = 6, 2

keras.utils.set_random_seed(5)
strategy = tf.distribute.MirroredStrategy()


def new_model(rate):
    with strategy.scope():
        model = VAE()
        model(tf.zeros((1, data.POINTS)))
        model.compile(optimizer=keras.optimizers.Adam(rate), jit_compile=False)
    return model


def main():
    model = new_model(5e-3)
    backup = keras.callbacks.BackupAndRestore("backup")
    examples = data.with_noise(data.curves(256, seed=0), seed=1)
    model.fit(examples, epochs=EPOCHS, verbose=0, callbacks=[WarmUp(4), backup])

    tuned = new_model(1e-3)
    tuned.set_weights(model.get_weights())
    others = data.with_noise(data.curves(128, seed=3), seed=4)
    history = tuned.fit(others, epochs=TUNING, verbose=0)

    test = data.curves(64, seed=9)
    output, log_scale = tuned(test)
    error = float(tf.reduce_mean(tf.square(output - test)))
    scale = float(tf.reduce_mean(tf.exp(log_scale)))
    losses = " ".join(f"{value:.3f}" for value in history.history.get("loss", []))
    print(f"tuning {losses}, error {error:.4f}, scale {scale:.4f}")


if __name__ == "__main__":
    main()
