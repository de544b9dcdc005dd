"""Losses: the weights after some steps of `fit`, and the loss that `fit` and `evaluate` return."""

from typing import Any

import numpy as np

from ..items import BATCH, How, Item
from ..sizes import CLASSES
from .place import Measured, Place, compile_model, fit, targets, weights_of


def measure(item: Item, how: How, place: Place) -> Measured:
    x, y, named = data(item, place)
    with place.scope():
        model = network(item, place)
        sgd = place.keras.optimizers.SGD(0.5 if not item.inputs else 0.05)
        compile_model(model, sgd, place.build(item.make))
    if how is How.EVALUATE:
        loss = model.evaluate(x, y, batch_size=BATCH, verbose=0, **named)
        return Measured({"loss": loss})
    history = fit(model, x, y, epochs=2, **named).history
    return Measured({"weights": weights_of(place, model), "loss": history["loss"]})


def data(item: Item, place: Place) -> tuple[Any, Any, dict[str, Any]]:
    x = place.inputs(item)
    y = targets(item.targets, place.rows)
    if item.inputs:
        steps = x.shape[1]
        y = np.repeat(y[:, None, :1], steps, axis=1) + np.arange(steps)[None, :, None] / 10
    if item.options.get("mask"):
        lengths = 1 + np.arange(place.rows) % x.shape[1]
        x[np.arange(x.shape[1]) >= lengths[:, None]] = 0
    return x, y, sample_weight(item, place, x)


def sample_weight(item: Item, place: Place, x: Any) -> dict[str, Any]:
    wanted, random = item.options.get("sample_weight"), np.random.default_rng(5)
    if not wanted:
        return {}
    shape = (place.rows,) if wanted == "rows" else x.shape[:2]
    return {"sample_weight": random.uniform(0.2, 2, size=shape).astype("float32")}


def network(item: Item, place: Place) -> Any:
    keras = place.keras
    if not item.inputs:
        first = keras.Input((6,))
        return keras.Sequential([first, keras.layers.Dense(CLASSES, activation="softmax")])
    first = keras.Input(place.inputs(item).shape[1:])
    masking = [keras.layers.Masking()] if item.options.get("mask") else []
    return keras.Sequential([first, *masking, keras.layers.Dense(1)])
