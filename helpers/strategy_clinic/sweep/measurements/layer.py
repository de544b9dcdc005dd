"""Layers: the weights and the state after some steps, the predictions, and whether parts of a batch get the same randomness."""

from typing import Any

import numpy as np
import tensorflow as tf

from ..items import BATCH, How, Item
from .place import Measured, Place, compile_model, fit, in_replicas, weights_of

RATE = 0.2  # divided by the number of the last layer's inputs
ROW = 7  # any row: random layers get the same one many times


def measure(item: Item, how: How, place: Place) -> Measured:
    if how is How.LOOP:
        return Measured({"different halves": different_halves(item, place)})
    x = place.inputs(item)
    with place.scope():
        model = network(item, place, x)
        compile_model(model, place.keras.optimizers.SGD(RATE / model.layers[-1].kernel.shape[0]))
    if how is How.PREDICT:
        return Measured({"outputs": model.predict(x, batch_size=BATCH, verbose=0)})
    wanted = x.reshape(len(x), -1).mean(axis=1, keepdims=True)
    fit(model, x, wanted, epochs=2)
    return Measured({"weights": weights_of(place, model)})


def network(item: Item, place: Place, x: Any) -> Any:
    keras = place.keras
    sizes = {}
    if item.options.get("fixed_batch"):
        sizes = {"batch_size": BATCH // max(place.replicas, 1)}
    first = keras.Input(x.shape[1:], dtype=x.dtype, **sizes)
    between = place.build(item.make)(first)
    if between.dtype not in ("float32", tf.float32):
        between = keras.layers.Rescaling(1.0)(between)
    flat = keras.layers.Flatten()(between) if len(between.shape) > 2 else between
    ones = keras.initializers.Constant(0.1)
    return keras.Model(first, keras.layers.Dense(1, kernel_initializer=ones)(flat))


def different_halves(item: Item, place: Place) -> int:
    """Returns 2 where the two halves of a batch of equal rows get different numbers, and 1 where they get the same.

    On several replicas each half is the part of half of them.
    """
    one = np.random.default_rng(ROW).uniform(0.1, 0.9, size=place.inputs(item).shape[1:])
    x = np.repeat(one[None].astype("float32"), place.rows, axis=0)
    with place.scope():
        layer = place.build(item.make)
        if not layer.built:
            layer.build(x.shape)
    results = in_replicas(place, lambda batch, _: layer(batch, training=True), place.dataset(x))
    outputs = np.concatenate([np.asarray(each) for each in results[0]])
    first, second = outputs[: BATCH // 2], outputs[BATCH // 2 :]
    return 1 if np.array_equal(first, second) else 2
