"""Reads what files of weights contain, and what they leave out of a model."""

from __future__ import annotations

import io
import os
import sys
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..base import tf_internals
from .events import Sample
from .patching import is_of_keras
from .variables import sample

ENDINGS = ".index", ".weights.h5", ".keras", ".h5"
MOST_FILES = 20
LARGEST_FILE = 64_000_000  # bytes of a file that is read
WEIGHTS = "model.weights.h5"  # in a .keras file
# In the names of values that belong to optimizers and to checkpoints themselves.
OF_OTHERS = "optimizer", "OPTIMIZER_SLOT", "_variables/", "learning_rate", "iter", "save_counter"


class Stored(NamedTuple):
    shape: tuple[int, ...]
    sample: Sample
    of_others: bool = False  # by its name; an optimizer lists the variables that it trains, too


def stored_in(path: str) -> list[Stored]:
    """Returns the numbers in a checkpoint of TensorFlow."""
    import tensorflow as tf

    reader = tf.train.load_checkpoint(path)
    kinds = reader.get_variable_to_dtype_map()
    return [
        Stored(
            tuple(shape),
            sample(as_array(reader.get_tensor(name))),
            any(part in name for part in OF_OTHERS),
        )
        for name, shape in reader.get_variable_to_shape_map().items()
        if kinds[name].is_floating
    ]


def stored_in_keras(path: str) -> list[Stored] | None:
    """Returns the numbers in a .keras file; None for a large one, which is not read."""
    h5py: Any = sys.modules.get("h5py")  # by which Keras has read the file
    with zipfile.ZipFile(path) as archive:
        if h5py is None or archive.getinfo(WEIGHTS).file_size > LARGEST_FILE:
            return None
        content = io.BytesIO(archive.read(WEIGHTS))
    found: list[Stored] = []

    def visited(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.dtype.kind == "f":
            is_other = any(part in name for part in OF_OTHERS)
            found.append(Stored(item.shape, sample(as_array(item)), is_other))

    with h5py.File(content, "r") as file:
        file.visititems(visited)
    return found


def as_array(value: Any) -> Any:
    import numpy

    return numpy.asarray(value)


def stored_values(pairs: Iterable[tuple[Any, Sample]]) -> list[Stored]:
    return [Stored(tuple(variable.shape), value) for variable, value in pairs]


def last_shape(stored: list[Stored]) -> tuple[int, ...]:
    return stored[-1].shape if stored else ()


def attributes_of(model: Any) -> Iterator[Any]:
    """Returns the variables that are attributes of a model and of its layers, also in lists and dictionaries."""
    import tensorflow as tf

    for layer in tf_internals.read(model, "_flatten_layers")():
        if saves_by_itself(layer):
            continue
        for value in list(vars(layer).values()):
            items = value.values() if isinstance(value, dict) else value
            within = items if isinstance(value, (list, tuple, dict)) else [value]
            yield from (each for each in within if isinstance(each, tf.Variable))


def weights_to_fill(model: Any) -> Iterator[list[Any]]:
    """Yields for each layer of a Keras 3 model the variables that a file fills as they are.

    Numbers of bfloat16 have a form of their own in it, a layer with LoRA has the sum of two variables, and a class of the
    program may save by itself.
    """
    layers = tf_internals.read(model, "_flatten_layers")()
    by_itself = {id(each) for own in filter(saves_by_itself, layers) for each in own.variables}
    for layer in layers:
        own = [each for each in own_variables(layer) if id(each) not in by_itself]
        if not getattr(layer, "lora_enabled", False):
            yield [each for each in own if each.dtype != "bfloat16"]


def own_variables(layer: Any) -> list[Any]:
    """Returns the variables of a layer of Keras 3, without those of layers in it."""
    names = "_trainable_variables", "_non_trainable_variables"
    return [each for name in names for each in getattr(layer, name, ())]


def saves_by_itself(layer: Any) -> bool:
    """Tells whether a class of the program decides what is saved of a layer."""
    kinds = [kind for kind in type(layer).__mro__ if "save_own_variables" in vars(kind)]
    return bool(kinds) and not is_of_keras(kinds[0])


def files_near(folder: str) -> tuple[str, ...]:
    """Returns the files of weights in a folder and below it, or, if there is no such folder, that begin with its path."""
    place, start = (folder, "") if os.path.isdir(folder) else os.path.split(folder)
    if not os.path.isdir(place or "."):
        return ()
    found: list[str] = []
    for path, folders, names in os.walk(place or "."):
        if start:
            folders.clear()
        found += [
            os.path.normpath(os.path.join(path, name.removesuffix(".index")))
            for name in sorted(names)
            if name.endswith(ENDINGS) and name.startswith(start)
        ]
    return tuple(found[:MOST_FILES])
