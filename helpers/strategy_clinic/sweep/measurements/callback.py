"""Callbacks: the history, the weights, and the numbers in the files that a callback writes."""

import contextlib
import csv
import glob
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..items import How, Item
from . import own
from .place import Measured, Place, Values, compile_model, fit, one_layer, targets, weights_of

EPOCHS = 4


def measure(item: Item, how: How, place: Place) -> Measured:
    x, y = place.inputs(item), targets("numbers", place.rows)[:, :2]
    if item.name == "TerminateOnNaN":
        x[-1] = np.nan
    with in_new_folder():
        right = {}
        if steps := item.options.get("stopped_after"):
            with contextlib.suppress(own.Stop):
                trained(item, place, x, y, own.stop_after(place.keras, steps))
            right = {"weights": uninterrupted(place, x, y)}
        model = trained(item, place, x, y)
        logs = model.history.history
        history = [np.asarray(logs[name], "float64") for name in sorted(logs)]
        values = {"weights": weights_of(place, model), "history": history}
        return Measured(values | written(place), right)


def uninterrupted(place: Place, x: Any, y: Any) -> list[Any]:
    """Returns the weights of one device that is not stopped."""
    alone = Place(place.keras_version, 0, place.parts)
    with alone.scope():
        model = one_layer(alone)
        compile_model(model, place.keras.optimizers.Adam(0.1))
    fit(model, x, y, epochs=EPOCHS)
    return weights_of(alone, model)


def trained(item: Item, place: Place, x: Any, y: Any, *more: Any) -> Any:
    with place.scope():
        model = one_layer(place)
        compile_model(
            model, place.keras.optimizers.Adam(0.1, use_ema=item.name == "SwapEMAWeights")
        )
    callback = place.build(item.make)
    fit(model, x, y, epochs=EPOCHS, callbacks=[callback, *more])
    return model


def written(place: Place) -> Values:
    """Returns the numbers that files hold, and how many files of each other kind there are."""
    found: Values = {"calls": list(own.COUNTED)}
    for path in sorted(glob.glob("*.*")):
        if path.endswith(".csv"):
            with open(path) as file:
                found[path] = [
                    np.asarray([number(each) for each in line[1:]])
                    for line in list(csv.reader(file))[1:]
                ]
        else:
            with place.strategy.scope():
                found[path] = values_in(place, path)
    return found


def number(text: str) -> float:
    return np.nan if text == "NA" else float(text)


def values_in(place: Place, path: str) -> list[Any]:
    if path.endswith(".weights.h5"):
        model = one_layer(place)
        model.load_weights(path)
        return weights_of(place, model)
    return weights_of(place, place.keras.models.load_model(path))


@contextlib.contextmanager
def in_new_folder() -> Iterator[None]:
    """Makes a temporary folder the working one."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
