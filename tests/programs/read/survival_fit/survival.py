"""Discrete-time survival analysis with `fit`.

Time is cut into intervals; the network gives the hazard of each one. The likelihood of a patient is the product
of (1 - hazard) over the intervals survived, times the hazard of the interval of the event, if there was one.
"""
import argparse

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

INTERVALS = 8


def simulate(patients, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(patients, 10)).astype("float32")
    x[:, 3] = (x[:, 3] > 0.4)
    risk = 0.8 * x[:, 0] - 0.6 * x[:, 1] + 0.7 * x[:, 3] + 0.4 * x[:, 0] * x[:, 4]
    event_time = rng.exponential(5.0 * np.exp(-risk))
    censor_time = rng.uniform(1.0, INTERVALS + 2.0, patients)
    time = np.minimum(np.minimum(event_time, censor_time), INTERVALS - 1e-3)
    happened = (event_time <= censor_time) & (event_time < INTERVALS)
    interval = np.floor(time).astype(int)
    at_risk = (np.arange(INTERVALS)[None] <= interval[:, None]).astype("float32")
    event = np.zeros((patients, INTERVALS), "float32")
    event[np.arange(patients), interval] = happened
    return x, np.stack([at_risk, event], axis=-1), time.astype("float32"), happened


def hazard_loss(y_true, logits):
    """Negative log likelihood, one value a patient."""
    at_risk, event = y_true[..., 0], y_true[..., 1]
    each = ops.softplus(logits) - event * logits
    return ops.sum(each * at_risk, axis=-1)


class Calibration(keras.metrics.Metric):
    """Expected number of events over the observed number."""

    def __init__(self, name="calibration", **kwargs):
        super().__init__(name=name, **kwargs)
        self.expected = self.add_weight(name="expected", initializer="zeros")
        self.observed = self.add_weight(name="observed", initializer="zeros")

    def update_state(self, y_true, logits, sample_weight=None):
        at_risk, event = y_true[..., 0], y_true[..., 1]
        self.expected.assign_add(ops.sum(ops.sigmoid(logits) * at_risk))
        self.observed.assign_add(ops.sum(event))

    def result(self):
        return self.expected / ops.maximum(self.observed, 1.0)


def calibration(y_true, logits):
    at_risk, event = y_true[..., 0], y_true[..., 1]
    return ops.sum(ops.sigmoid(logits) * at_risk) / ops.maximum(ops.sum(event), 1.0)


def block(x, units, seed, **norm):
    x = layers.Dense(units, use_bias=False, kernel_initializer=keras.initializers.HeNormal(seed=seed))(x)
    x = layers.BatchNormalization(momentum=0.8, **norm)(x)
    return layers.Activation("relu")(x)


def make_model(columns):
    inputs = keras.Input((columns,))
    x = block(inputs, 24, seed=1, synchronized=True)
    x = block(x, 16, seed=2, synchronized=True)
    logits = layers.Dense(INTERVALS, kernel_initializer=keras.initializers.GlorotUniform(seed=3),
                          bias_initializer=keras.initializers.Constant(-1.5))(x)
    return keras.Model(inputs, logits)


def concordance(score, time, happened):
    """Share of comparable pairs that the score puts in the right order."""
    earlier = (time[:, None] < time[None, :]) & happened[:, None]
    right = score[:, None] > score[None, :]
    return float((earlier & right).sum() / max(earlier.sum(), 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64, help="patients in a step, over all devices")
    parser.add_argument("--lr", type=float, default=0.01)
    args = parser.parse_args()

    x, y, _, _ = simulate(448, seed=5)
    x_test, y_test, time, happened = simulate(128, seed=6)

    strategy = tf.distribute.MirroredStrategy()
    print("devices:", strategy.num_replicas_in_sync)
    global_batch = args.batch
    train = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x), seed=9).batch(global_batch, drop_remainder=True)
    test = tf.data.Dataset.from_tensor_slices((x_test, y_test)).batch(global_batch)

    with strategy.scope():
        model = make_model(x.shape[1])
        model.compile(optimizer=keras.optimizers.SGD(args.lr * 3, momentum=0.9), loss=hazard_loss, metrics=[Calibration()])

    history = model.fit(train, epochs=args.epochs, verbose=0)
    for epoch, loss in enumerate(history.history["loss"]):
        print(f"epoch {epoch + 1} loss {loss:.4f} calibration {history.history['calibration'][epoch]:.4f}")
    scores = model.evaluate(test, verbose=0, return_dict=True)
    logits = model.predict(x_test, batch_size=64, verbose=0)
    survival = np.cumprod(1.0 / (1.0 + np.exp(logits)), axis=1)
    index = concordance(-survival.mean(axis=1), time, happened)
    norms = sum(float(np.square(w).sum()) for w in model.get_weights())
    print(f"concordance {index:.4f}")
    print(f"result: loss {scores['loss']:.6f} calibration {scores['calibration']:.6f} "
          f"survival {survival[:, -1].mean():.6f} norm {norms:.5f}")


if __name__ == "__main__":
    main()
