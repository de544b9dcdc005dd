"""Cells by their names, in this process."""

import importlib
from typing import Any

from ...base import dataset_iterators
from ...base.errors import UserError
from ...setups import runtime
from ..devices import split_cpu
from ..differences import Raised, Result
from ..items import KERAS, cells_of
from .catalogue import ITEMS
from .measured import References, result_of, values_at


def results_of(path: str, keras: int, names: dict[str, float | None]) -> dict[str, Result]:
    """Returns the results of the cells with these names, all of them of one row; what rounding does is given or measured."""
    item = next(each for each in ITEMS if each.path == path)
    cells = [cell for cell in cells_of(item, keras) if cell.name in names]
    references: References = {}
    return {cell.name: result_of(cell, references, names[cell.name]) for cell in cells}


def start(keras: int = 3) -> None:
    """Starts TensorFlow with several devices, and does not wait for tf.data where an iterator is deleted.

    Raises UserError where Keras was imported with another backend, as by a conftest.py that comes first.
    """
    runtime.choose_keras(keras)
    runtime.start_tensorflow()
    split_cpu()
    dataset_iterators.turn_off_autotuning(setattr)
    require_tensorflow(importlib.import_module(KERAS[3]).backend.backend())


def require_tensorflow(backend: str) -> None:
    if backend != "tensorflow":
        raise UserError(
            f"Keras runs on {backend} here, and the cells need TensorFlow: set KERAS_BACKEND=tensorflow."
        )


def values_of_cell(name: str, replicas: int) -> Any:
    """Returns what the row of a cell gives on this number of replicas, 0 for one device."""
    keras = int(name[-1])
    cells = [cell for item in ITEMS for cell in cells_of(item, keras) if cell.name == name]
    found = values_at(cells[0], replicas)
    return found if isinstance(found, Raised) else found.values
