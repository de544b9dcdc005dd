"""Savers: the weights after training, saving, loading and training again."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..items import How, Item
from .callback import in_new_folder
from .place import (
    Measured,
    Place,
    compile_model,
    fit,
    one_layer,
    optimizer_values,
    targets,
    weights_of,
)


def measure(item: Item, how: How, place: Place) -> Measured:
    x, y = place.inputs(item), targets("numbers", place.rows)[:, :2]
    alone = Place(place.keras_version, 0, place.parts)
    saved_at = alone if item.options["alone"] == "save" else place
    loaded_at = alone if item.options["alone"] == "load" else place
    with in_new_folder():
        model = new_model(item, saved_at)
        fit(model, x, y, epochs=2)
        if item.name == "export":
            return exported(model, x, loaded_at)
        save, load = WAYS[item.name]
        save(model)
        loaded = load(item, loaded_at)
        fit(loaded, x, y, epochs=1)
        if item.name == "save_weights":  # without the optimizer's state
            return Measured({"weights": weights_of(place, loaded)})
        state = optimizer_values(loaded.optimizer)
        return Measured({"weights": weights_of(place, loaded), "state": state})


def exported(model: Any, x: Any, place: Place) -> Measured:
    """Calls an exported model in the replicas, or on one device."""
    model.export("exported") if hasattr(model, "export") else tf.saved_model.save(model, "exported")
    with place.scope():
        loaded = tf.saved_model.load("exported")
    serve = loaded.serve if hasattr(loaded, "serve") else loaded.signatures["serving_default"]
    return Measured({"outputs": place.copies(place.strategy.run(serve, (tf.constant(x),)))[0]})


def new_model(item: Item, place: Place) -> Any:
    optimizers = place.keras.optimizers
    named = {"Adam": lambda: optimizers.Adam(0.1), "SGD": lambda: optimizers.SGD(0.1, momentum=0.9)}
    with place.scope():
        model = one_layer(place)
        optimizer = named[item.options.get("optimizer", "SGD")]()
        compile_model(model, optimizer, place.keras.losses.MeanSquaredError())
    return model


def load_whole(path: str) -> Callable[[Item, Place], Any]:
    def load(_: Item, place: Place) -> Any:
        with place.scope():
            return place.keras.models.load_model(path)

    return load


def load_weights(item: Item, place: Place) -> Any:
    model = new_model(item, place)
    model.load_weights("saved.weights.h5")
    return model


def restore(item: Item, place: Place) -> Any:
    model = new_model(item, place)
    with place.strategy.scope():
        build = getattr(model.optimizer, "build", None)
        build and build(model.trainable_variables)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    checkpoint.restore(tf.train.latest_checkpoint(".")).expect_partial()
    return model


def save_checkpoint(model: Any) -> None:
    tf.train.Checkpoint(model=model, optimizer=model.optimizer).save("checkpoint")


WAYS: dict[str, tuple[Callable[[Any], Any], Callable[[Item, Place], Any]]] = {
    "save .keras": (lambda model: model.save("saved.keras"), load_whole("saved.keras")),
    "save .h5": (lambda model: model.save("saved.h5"), load_whole("saved.h5")),
    "save_weights": (lambda model: model.save_weights("saved.weights.h5"), load_weights),
    "tf.train.Checkpoint": (save_checkpoint, restore),
}
