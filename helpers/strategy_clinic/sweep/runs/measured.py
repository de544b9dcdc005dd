"""Measures a cell in this process, on one device first, and compares what both give."""

import contextlib
import importlib
import math
import os
import re
import warnings
from dataclasses import dataclass, replace
from typing import Any

from ..differences import Outcome, Raised, Result, compare, size_of
from ..items import KERAS, Cell, How
from .rounding import last_digit_of, last_digits_changed, tolerance_of

PACKAGE = __package__.rpartition(".")[0]
MESSAGE = 160  # characters of a message that are stored
# Lines of a message that say where it was raised, and the parts of a line that belong to one process: colours, the numbers
# of layers and of resources, addresses, names of nodes, paths.
PLACES = re.compile(
    r"Graph execution error|Detected at node|Exception encountered|File |in user code|\[\[|<stack|Stack trace|\d+ root error"
)
OWN = re.compile(
    r"\x1b\[[0-9;]*m|(?<=[a-z])_\d+\b|0x[0-9a-f]+|/\d+(?= \()| \(defined @ [^)\n]*\)?|\{\{.*?\}\} ?|\S*/site-packages/"
)


@dataclass(frozen=True)
class Reference:
    """What one device gives, and how much of it a rounding error changes."""

    values: Any
    rounding: float


References = dict[tuple[str, ...], Reference]  # by row, way and parts


def result_of(cell: Cell, references: References, rounding: float | None = None) -> Result:
    """Returns how a cell differs from one device, which runs if the references do not hold what it gives."""
    began = processor_seconds()
    key = cell.item.path, str(cell.keras), cell.how, cell.parts
    if key not in references:
        references[key] = reference_of(cell, rounding)
    result = compared(cell, references[key])
    seconds = round(processor_seconds() - began, 2)
    return replace(result, rounding=references[key].rounding, seconds=seconds)


def processor_seconds() -> float:
    """Returns the seconds of this process and of those that it has started and that have ended."""
    return sum(os.times()[:4])


def compared(cell: Cell, reference: Reference) -> Result:
    values, right = values_at(cell, cell.replicas), reference.values
    if not isinstance(values, Raised) and not isinstance(right, Raised):
        values, right = values.values, right.values | values.right
    tolerance = tolerance_of(reference.rounding)
    result = compare(values, right, tolerance)
    if result.outcome is Outcome.DIFFERS and cell.how is How.FIT:
        return replace(result, in_turn=agrees_in_turn(cell, values, tolerance))
    return result


def reference_of(cell: Cell, rounding: float | None) -> Reference:
    values = values_at(cell, 0)
    return Reference(values, rounding_of(cell, values) if rounding is None else rounding)


def rounding_of(cell: Cell, values: Any) -> float:
    """Returns how much the values of one device change with the last digits of what it begins with, at least by these."""
    least = last_digit_of(cell.item)
    sizes = [] if isinstance(values, Raised) else changes(cell, values, least)
    return float(f"{max([least, *filter(math.isfinite, sizes)]):.2g}")


def changes(cell: Cell, values: Any, by: float) -> list[float]:
    with last_digits_changed(importlib.import_module(KERAS[cell.keras]).Model, by):
        others = values_at(cell, 0)
    if isinstance(others, Raised):
        return []
    return [size_of(others.values[name], each) for name, each in values.values.items()]


def agrees_in_turn(cell: Cell, values: Any, tolerance: float) -> bool:
    """Returns whether one device that takes the parts of the replicas in turn gives the same values."""
    from .in_turn import parts_in_turn

    keras = importlib.import_module(KERAS[cell.keras])
    with parts_in_turn(keras.Model, cell.replicas):
        right = values_at(cell, 0)
    if isinstance(right, Raised):
        return False
    return compare(values, right.values | right.right, tolerance).outcome is Outcome.SAME


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
