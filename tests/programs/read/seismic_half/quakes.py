"""Quarry blast, tremor or nothing? Spectral bands of a seismometer, classified in half precision.

The network is what the stations run, so it is trained in float16 as well, with a scaled loss.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf

BANDS, KINDS = 16, 3
HALF = 16  # a batch: as many quiet traces, and then strong ones
BATCH = 2 * HALF


def catalogue(count, seed, strength):
    """Band amplitudes of traces; strong motion was recorded with the same gain."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, KINDS, count)
    shape = np.random.default_rng(50).normal(size=(KINDS, BANDS))
    bands = strength * (shape[kind] + 0.9 * rng.normal(size=(count, BANDS)))
    return bands.astype("float32"), kind.astype("int32")


def batches(quiet, strong):
    """Half of each batch from either catalogue."""
    blocks = [part for at in range(0, len(quiet[0]), HALF) for part in (slice_of(quiet, at), slice_of(strong, at))]
    rows = tuple(np.concatenate(columns) for columns in zip(*blocks))
    return tf.data.Dataset.from_tensor_slices(rows).batch(BATCH, drop_remainder=True)


def slice_of(traces, at):
    return tuple(column[at : at + HALF] for column in traces)


def classifier():
    return keras.Sequential([
        keras.Input((BANDS,)),
        keras.layers.Dense(20, activation="relu"),
        keras.layers.Dense(20, activation="relu"),
        keras.layers.Dense(KINDS, dtype="float32"),
    ])


class RateAtTheStart(keras.callbacks.Callback):
    """Raises the learning rate linearly during the first steps."""

    def __init__(self, peak, steps):
        super().__init__()
        self.peak, self.steps, self.done = peak, steps, 0

    def on_train_batch_begin(self, batch, logs=None):
        self.done += 1
        self.model.optimizer.learning_rate = self.peak * min(1.0, self.done / self.steps)


def main():
    keras.utils.set_random_seed(46)
    keras.mixed_precision.set_global_policy("mixed_float16")
    strategy = tf.distribute.MirroredStrategy()
    known = batches(catalogue(161, 1, 1.0), catalogue(160, 2, 40.0)).cache()
    fresh_bands, fresh_kinds = catalogue(96, 3, 1.0)
    with strategy.scope():
        model = classifier()
        inner = keras.optimizers.SGD(0.001, momentum=0.8)
        optimizer = keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=64.0)
        model.compile(optimizer, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    history = model.fit(known, epochs=4, callbacks=[RateAtTheStart(0.001, 8)], verbose=0).history
    for epoch, (loss, share) in enumerate(zip(history["loss"], history["accuracy"]), 1):
        print(f"epoch {epoch}: loss {loss:.4f}, right {share:.3f}")
    fresh = model.evaluate(fresh_bands, fresh_kinds, batch_size=BATCH, verbose=0)
    size = sum(float(np.abs(weight.numpy()).sum()) for weight in model.trainable_variables)
    finite = all(bool(np.isfinite(weight.numpy()).all()) for weight in model.weights)
    print(f"loss {history['loss'][-1]:.4f} quiet traces {fresh[0]:.4f} weights {size:.3f} all finite {float(finite)}")


if __name__ == "__main__":
    main()
