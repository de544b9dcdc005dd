"""Runs cells in this process, on one device first, and compares what they give."""

import contextlib
import importlib
import os
import re
import warnings
from dataclasses import replace
from typing import Any

from ...base import dataset_iterators
from ...setups import runtime
from ..differences import Outcome, Raised, Result, compare
from ..items import KERAS, Cell, How, cells_of
from .catalogue import ITEMS

PACKAGE = __package__.rpartition(".")[0]
DEVICES = 4
MESSAGE = 160  # characters of a message that are stored
# Lines of a message that say where it was raised, and the parts of a line that belong to one process: colours, the numbers
# of layers and of resources, addresses, names of nodes, paths.
PLACES = re.compile(
    r"Graph execution error|Detected at node|Exception encountered|File |in user code|\[\[|<stack|Stack trace|\d+ root error"
)
OWN = re.compile(
    r"\x1b\[[0-9;]*m|(?<=[a-z])_\d+\b|0x[0-9a-f]+|/\d+(?= \()| \(defined @ [^)\n]*\)?|\{\{.*?\}\} ?|\S*/site-packages/"
)
References = dict[tuple[str, ...], Any]  # what one device gives, by row, way and parts


def split_cpu() -> None:
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    parts = [tf.config.LogicalDeviceConfiguration()] * DEVICES
    tf.config.set_logical_device_configuration(cpu, parts)


def results_of(path: str, keras: int, names: list[str]) -> dict[str, Result]:
    """Returns the results of the cells with these names, all of them of one row."""
    item = next(each for each in ITEMS if each.path == path)
    return measured([cell for cell in cells_of(item, keras) if cell.name in names])


def measured(cells: list[Cell]) -> dict[str, Result]:
    references: References = {}
    return {cell.name: result_of(cell, references) for cell in cells}


def result_of(cell: Cell, references: References) -> Result:
    """Returns how a cell differs from one device, which runs if the references do not hold what it gives."""
    key = cell.item.path, str(cell.keras), cell.how, cell.parts
    if key not in references:
        references[key] = values_at(cell, 0)
    values, right = values_at(cell, cell.replicas), references[key]
    if not isinstance(values, Raised) and not isinstance(right, Raised):
        values, right = values.values, right.values | values.right
    result = compare(values, right, cell.item.tolerance)
    if result.outcome is Outcome.DIFFERS and cell.how is How.FIT:
        return replace(result, in_turn=agrees_in_turn(cell, values))
    return result


def agrees_in_turn(cell: Cell, values: Any) -> bool:
    """Returns whether one device that takes the parts of the replicas in turn gives the same values."""
    from .in_turn import parts_in_turn

    keras = importlib.import_module(KERAS[cell.keras])
    with parts_in_turn(keras.Model, cell.replicas):
        right = values_at(cell, 0)
    if isinstance(right, Raised):
        return False
    return compare(values, right.values | right.right, cell.item.tolerance).outcome is Outcome.SAME


def values_at(cell: Cell, replicas: int) -> Any:
    """Returns the values of a row on this number of replicas, or what it raised."""
    from ..measurements.place import Place

    module = importlib.import_module(f"{PACKAGE}.measurements.{cell.item.kind}")
    place = Place(cell.keras, replicas, cell.parts)
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            return module.measure(cell.item, cell.how, place)
        except Exception as error:
            return Raised(one_line(error))


def one_line(error: Exception) -> str:
    """Returns the class and the cause of an error in one line, without what differs by process or machine."""
    lines = [line.strip() for line in OWN.sub("", str(error)).splitlines()]
    said = [line for line in lines if line and not PLACES.match(line)]
    causes = [line for line in said if re.match(r"\w+Error: ", line)]  # of a traced function
    cause = causes[-1] if causes else said[0] if said else ""
    return f"{type(error).__name__}: {cause}"[:MESSAGE].strip()


# Cells by their names


def start(keras: int = 3) -> None:
    """Starts TensorFlow with several devices, and does not wait for tf.data where an iterator is deleted."""
    runtime.choose_keras(keras)
    runtime.start_tensorflow()
    split_cpu()
    dataset_iterators.turn_off_autotuning(setattr)


def values_of_cell(name: str, replicas: int) -> Any:
    """Returns what the row of a cell gives on this number of replicas, 0 for one device."""
    keras = int(name[-1])
    cells = [cell for item in ITEMS for cell in cells_of(item, keras) if cell.name == name]
    found = values_at(cells[0], replicas)
    return found if isinstance(found, Raised) else found.values
