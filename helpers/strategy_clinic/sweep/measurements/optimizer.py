"""Optimizers: the weights and the optimizer's own variables after some steps."""

from typing import Any

import numpy as np

from ..items import BATCH, How, Item, build
from ..sizes import FEATURES
from .place import (
    Measured,
    Place,
    compile_model,
    fit,
    inputs,
    one_layer,
    optimizer_values,
    targets,
    train_loop,
    weights_of,
)

EPOCHS = 2


def measure(item: Item, how: How, place: Place) -> Measured:
    if item.option == "repeated ids":
        return repeated_ids(item, place)
    data = inputs("vectors", place.rows), targets("numbers", place.rows)[:, :2]
    if item.options.get("overflow"):
        data[0][BATCH - 1] = np.inf  # in the last part of the first batch
    with place.scope():
        model, optimizer = one_layer(place), made(item, place)
        if how is How.FIT:
            compile_model(model, optimizer)
    if how is How.FIT:
        fit(model, *data, epochs=EPOCHS)
        return Measured(values(place, model, model.optimizer))
    with place.strategy.scope():
        optimizer.build(model.trainable_variables)
    train_loop(place, model, optimizer, place.dataset(*data), EPOCHS)
    return Measured(values(place, model, optimizer))


def made(item: Item, place: Place) -> Any:
    optimizer = place.build(item.make)
    if not item.options.get("scaled"):
        return optimizer
    if place.keras_version == 2:
        return place.keras.mixed_precision.LossScaleOptimizer(optimizer, initial_scale=4.0)
    return place.keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=4.0)


def values(place: Place, model: Any, optimizer: Any) -> dict[str, Any]:
    return {"weights": weights_of(place, model), "state": optimizer_values(optimizer)}


def repeated_ids(item: Item, place: Place) -> Measured:
    """Trains an embedding on ids that a batch repeats, and the same as a product with one-hot rows, on one device."""
    keras, ids = place.keras, inputs("ids", place.rows)[:, 0] % FEATURES
    wanted = targets("numbers", place.rows)[:, :2]

    def trained(at: Place, first: Any, data: Any) -> Any:
        with at.scope():
            model = keras.Sequential(first())
            compile_model(model, build(keras, item.make))
            model.build((None, *data.shape[1:]))
            model.set_weights([np.ones((FEATURES, 2), "float32")])
        fit(model, data, wanted, epochs=EPOCHS)
        return model.get_weights()

    one_hot = trained(
        Place(place.keras_version, 0, place.parts),
        lambda: [keras.layers.Dense(2, use_bias=False)],
        np.eye(FEATURES, dtype="float32")[ids],
    )
    found = trained(place, lambda: [keras.layers.Embedding(FEATURES, 2)], ids)
    return Measured({"weights": found}, {"weights": one_hot})
