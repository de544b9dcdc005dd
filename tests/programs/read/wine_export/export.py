"""Trains a wine grader, exports it as .keras, reloads the file as a colleague would and tunes it for a second cellar.

The tuned grader is compared with the exported one, and its predictions go to predictions.csv.
"""
import csv
import pathlib

import numpy as np
import tensorflow as tf
import keras

WORK = pathlib.Path(__file__).resolve().parent / "export"
GLOBAL_BATCH = 16
GRADES = 5


@keras.saving.register_keras_serializable(package="cellar")
class Tasting(keras.layers.Layer):
    """Standardises the measurements with fixed statistics and gates them."""

    def __init__(self, units=12, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.value = keras.layers.Dense(units)
        self.gate = keras.layers.Dense(units, activation="sigmoid")

    def build(self, shape):
        self.centre = self.add_weight(shape=shape[1:], initializer="zeros", trainable=False, name="centre")
        self.spread = self.add_weight(shape=shape[1:], initializer="ones", trainable=False, name="spread")
        self.value.build(shape)
        self.gate.build(shape)

    def adapt(self, data):
        self.centre.assign(data.mean(0))
        self.spread.assign(data.std(0) + 1e-6)

    def call(self, x):
        x = (x - self.centre) / self.spread
        return self.value(x) * self.gate(x)

    def get_config(self):
        return {**super().get_config(), "units": self.units}


def cellar(count, seed, shift):
    rng = np.random.default_rng(seed)
    x = rng.normal(shift, 1.5, (count, 7)).astype("float32")
    taste = np.random.default_rng(0).normal(0, 0.4, 7)
    grade = np.clip(np.round(2 + (x - shift) @ taste + rng.normal(0, 0.3, count)), 0, GRADES - 1)
    return x, grade.astype("float32")


def grader(x):
    inputs = keras.Input((7,))
    tasting = Tasting(name="tasting")
    hidden = keras.layers.Dense(10, activation="relu")(tasting(inputs))
    model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    tasting.adapt(x)
    model.compile(optimizer=keras.optimizers.SGD(0.01, momentum=0.9), loss="mse")
    model.optimizer.build(model.trainable_variables)
    return model


def feed(strategy, x, y, seed):
    """Whole batches only, in an order that the seed fixes."""
    order = np.random.default_rng(seed).permutation(len(x))
    data = tf.data.Dataset.from_tensor_slices((x[order], y[order])).batch(GLOBAL_BATCH, drop_remainder=True)
    return strategy.experimental_distribute_dataset(data)


def trainer(strategy, model):
    """Returns a function that makes one pass with the model's own optimizer."""

    def replica(x, y):
        with tf.GradientTape() as tape:
            error = tf.square(model(x, training=True)[:, 0] - y)
            loss = tf.nn.compute_average_loss(error, global_batch_size=GLOBAL_BATCH)
        grads = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    @tf.function
    def step(x, y):
        return strategy.reduce("SUM", strategy.run(replica, args=(x, y)), axis=None)

    def one_pass(x, y, seed):
        return float(np.mean([float(step(*batch)) for batch in feed(strategy, x, y, seed)]))

    return one_pass


def main():
    keras.utils.set_random_seed(12)
    WORK.mkdir(exist_ok=True)
    strategy = tf.distribute.MirroredStrategy()
    old, new = cellar(96, 1, 4.0), cellar(64, 2, 4.5)
    with strategy.scope():
        model = grader(old[0])
    run = trainer(strategy, model)
    for number in range(4):
        print(f"first cellar, pass {number}: {run(*old, seed=number):.5f}")
    path = WORK / "grader.keras"
    model.save(path)
    exported = model.predict(new[0], batch_size=GLOBAL_BATCH, verbose=0)

    with strategy.scope():
        tuned = keras.models.load_model(path)
    before = np.abs(tuned.predict(new[0], batch_size=GLOBAL_BATCH, verbose=0) - exported).max()
    print(f"largest difference after reloading: {before:.1e}")
    tuned.optimizer.learning_rate.assign(0.004)
    run = trainer(strategy, tuned)
    loss = 0.0
    for number in range(4):
        loss = run(*new, seed=10 + number)
        print(f"second cellar, pass {number}: {loss:.5f}")
    tuned.save_weights(WORK / "tuned.weights.h5")

    served = grader(old[0])
    served.load_weights(WORK / "tuned.weights.h5")
    grades = served.predict(new[0], batch_size=GLOBAL_BATCH, verbose=0)[:, 0]
    with open(WORK / "predictions.csv", "w", newline="") as out:
        csv.writer(out).writerows([["wine", "grade"], *([i, f"{g:.4f}"] for i, g in enumerate(grades))])
    moved = float(np.abs(grades - exported[:, 0]).mean())
    print(f"tuned: loss {loss:.6f} grades {float(grades.mean()):.6f} moved {moved:.6f}")


if __name__ == "__main__":
    main()
