"""Autoencoder of vibration windows: trained on one machine, then adapted to another one.

The reconstruction error of normal windows gives the alarm threshold of the second machine.
"""
import pathlib

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags
from keras import layers

FLAGS = flags.FLAGS
flags.DEFINE_integer("epochs", 3, "Epochs on the first machine.")
flags.DEFINE_integer("adapt_epochs", 2, "Epochs on the second machine.")
flags.DEFINE_integer("batch", 32, "Global batch size.")
flags.DEFINE_float("rate", 0.2, "Learning rate on the first machine.")
flags.DEFINE_float("adapt_rate", 0.04, "Learning rate on the second machine.")
flags.DEFINE_string("loss", "squared", "squared or robust.")
flags.DEFINE_string("out", str(pathlib.Path(__file__).resolve().parent / "out"), "Output folder.")

WINDOW = 32


def machine(count, speed, seed):
    """Windows of a rotating machine: two harmonics, bursts and noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(WINDOW)
    phase = rng.uniform(0, 2 * np.pi, (count, 1))
    gain = rng.gamma(2.0, 0.5, (count, 1))
    x = gain * (np.sin(speed * t + phase) + 0.5 * np.sin(2.3 * speed * t + 1.7 * phase))
    bursts = rng.random((count, WINDOW)) < 0.03
    x += bursts * rng.normal(0, 1.5, x.shape) + rng.normal(0, 0.1, x.shape)
    return x.astype(np.float32)[..., None]


def pipeline(windows):
    data = tf.data.Dataset.from_tensor_slices((windows, windows))
    return data.batch(FLAGS.batch, drop_remainder=True).cache()


def make_loss(name):
    losses = {
        "squared": keras.losses.MeanSquaredError(),
        "robust": keras.losses.Huber(0.5),
    }
    return losses[name]


def norm():
    return layers.BatchNormalization(momentum=0.8, synchronized=True)


def autoencoder():
    x = inputs = keras.Input((WINDOW, 1))
    for filters in (8, 12):
        x = layers.Conv1D(filters, 5, strides=2, padding="same", use_bias=False)(x)
        x = layers.ReLU()(norm()(x))
    code = layers.Dense(6)(layers.Flatten()(x))
    x = layers.Reshape((WINDOW // 4, 12))(layers.Dense(12 * WINDOW // 4, activation="relu")(code))
    x = layers.Conv1DTranspose(8, 5, strides=2, padding="same", use_bias=False)(x)
    x = layers.ReLU()(norm()(x))
    outputs = layers.Conv1DTranspose(1, 5, strides=2, padding="same")(x)
    return keras.Model(inputs, outputs)


def report(tag, history):
    for number, (loss, rmse) in enumerate(zip(history.history["loss"], history.history["rmse"])):
        print(f"{tag} {number + 1}: loss {loss:.5f} rmse {rmse:.5f}")


def main(_):
    keras.utils.set_random_seed(21)
    first = machine(225, speed=0.55, seed=1)
    second = machine(161, speed=0.8, seed=2)
    check = machine(96, speed=0.8, seed=3)
    out = pathlib.Path(FLAGS.out)
    out.mkdir(parents=True, exist_ok=True)

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = autoencoder()
        model.compile(
            optimizer=keras.optimizers.SGD(FLAGS.rate, momentum=0.8),
            loss=make_loss(FLAGS.loss),
            metrics=[keras.metrics.RootMeanSquaredError(name="rmse")],
        )
    report("first", model.fit(pipeline(first), epochs=FLAGS.epochs, verbose=0, shuffle=False))
    base = out / "base.weights.h5"
    model.save_weights(base)

    # how the model does on the second machine without and with adaptation
    before = model.evaluate(pipeline(check), verbose=0, return_dict=True)
    model.load_weights(base)
    model.optimizer.learning_rate = FLAGS.adapt_rate
    report("second", model.fit(pipeline(second), epochs=FLAGS.adapt_epochs, verbose=0, shuffle=False))
    after = model.evaluate(pipeline(check), verbose=0, return_dict=True)

    rebuilt = model.predict(check, batch_size=FLAGS.batch, verbose=0)
    errors = np.sqrt(np.mean((rebuilt - check) ** 2, axis=(1, 2)))
    np.save(out / "threshold.npy", np.quantile(errors, 0.95))
    print(f"rmse before {before['rmse']:.5f} after {after['rmse']:.5f}")
    weights = sum(np.abs(w).sum() for w in model.get_weights())
    print(f"final: loss {after['loss']:.5f} rmse {after['rmse']:.5f} "
          f"threshold {np.quantile(errors, 0.95):.5f} weights {weights:.5f}")


if __name__ == "__main__":
    app.run(main)
