"""The tables as a page that needs nothing else; all values are escaped."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ..base.templates import from_template
from . import stages, text
from .tables import Row, Step, Tables, counted, scale_of
from .values import Value

STAGES = stages.TABLE.values()
ABOUT = (
    "Each column is a replica; the last one is one device with the same examples. A row is marked where parts do not add up to "
    "what one device has, or where copies that should agree do not. What differs need not be wrong: statistics of a part of a "
    "batch differ from those of the whole batch."
)
MANY = text.MOST_NUMBERS  # of more numbers a strip of colour is drawn
COLOURS = "178,86,0", "0,98,178"  # of numbers above and below 0


def page(tables: Tables) -> str:
    helpers = {"html": sys.modules[__name__], "text": text}
    return from_template("inside/templates/page.html", tables=tables, **helpers)


# What the templates ask for


def stage(row: Row) -> str:
    return row.stage.title + (f" ({row.how})" if row.has_how else "")


def summary(step: Step) -> str:
    return f"{counted(len(step.marked), 'row')} marked" if step.marked else "nothing differs"


def is_first(row: Row, tables: Tables) -> bool:
    return bool(tables.first) and tables.first[1] is row  # type: ignore[index]  # there is one


def scale(row: Row) -> float:
    return scale_of(row)


def strips(value: Value | None, largest: float) -> Iterator[list[str]]:
    """Yields the colours of a tensor that is too large to be shown as numbers."""
    if value is not None and len(value.entries) > MANY and largest > 0:
        yield [colour(entry / largest) for entry in value.entries]


def colour(part: float) -> str:
    """Returns a colour for a number from -1 to 1; grey for none."""
    if part != part or abs(part) == float("inf"):
        return "rgba(127,127,127,1)"
    return f"rgba({COLOURS[part < 0]},{min(abs(part), 1):.2f})"
