"""The tables as a page that needs nothing else, and as a part of a notebook; all values are escaped."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..base.templates import from_template
from . import excerpt, stages, text
from .tables import Row, Step, Tables, counted, scale_of
from .values import Value

STAGES = stages.TABLE.values()
ABOUT = (
    "Each column is a replica; the last one is one device with the same examples. What differs need not be wrong: statistics of "
    "a part of a batch differ from those of the whole batch. Below the norm of a large tensor is a strip with sums of its "
    "blocks: brown above 0, blue below. A dot: nothing was held, or the run ended before."
)
GENERATOR = "Strategy Clinic"  # by which a page that was written before is known
PAGE, CARD = "inside/templates/page.html", "inside/templates/card.html"
COLOURS = "178,86,0", "0,98,178"  # of numbers above and below 0


def page(tables: Tables, template: str = PAGE, **more: Any) -> str:
    """Returns a whole page; a template that extends this one says more."""
    helpers = {"html": sys.modules[__name__], "text": text}
    return from_template(template, tables=tables, **helpers, **more)


def card(tables: Tables) -> str:
    """Returns what a notebook shows below a cell: the step in which the runs part is open, and the others are folded away."""
    return page(tables, CARD)


def is_page(words: str) -> bool:
    """Tells whether a text is a page that was written here."""
    return f"<meta name='generator' content='{GENERATOR}'>" in words[:1000]


# What the templates ask for

grouped = excerpt.grouped


def legend(tables: Tables) -> list[str]:
    return [*text.legend_of(row for step in tables.steps for row in step.rows)]


@dataclass(frozen=True)
class Cell:
    """What one replica holds, or all of them together."""

    words: str
    value: Value | None
    span: int = 1


def cells(row: Row, tables: Tables) -> list[Cell]:
    """Returns the cells of the columns that `text.columns_of` names."""
    *mine, alone = text.values_in(row, tables)
    held = [Cell(*each) for each in zip(mine, row.cells)]
    if row.is_together:
        held = [Cell(mine[0], row.cells[0], tables.replicas)]
    return [*held, Cell(text.compared_in(row), None), Cell(alone, row.alone)]


@dataclass(frozen=True)
class Line:
    """A line of the program as its reader has it."""

    number: int
    name: str
    code: str
    parts: bool  # the runs part here


def listing(tables: Tables) -> Iterator[Line]:
    """Yields the lines; of cells, without what was added to run them."""
    part = tables.place.line if tables.place and tables.place.path == tables.path else 0
    before = ""
    for number, code in enumerate(tables.source, 1):
        name = tables.places[number - 1] if tables.places else f"{number:3}"
        if name and name != before:
            yield Line(number, name, code, number == part)
        before = name


def opened(tables: Tables) -> Step | None:
    """Returns the step in which the runs part, or the first one."""
    return tables.first[0] if tables.first else next(iter(tables.steps), None)


def capitalized(words: str) -> str:
    return words[:1].upper() + words[1:]


def is_shown(row: Row, tables: Tables) -> bool:
    """Tells whether the line that makes a row is on the page."""
    return bool(tables.source) and row.lines[0].path == tables.path


def summary(step: Step) -> str:
    return f"{counted(len(step.marked), 'row')} marked" if step.marked else "nothing differs"


def is_first(row: Row, tables: Tables) -> bool:
    return bool(tables.first) and tables.first[1] is row  # type: ignore[index]  # there is one


def scale(row: Row) -> float:
    return scale_of(row)


def strips(cell: Cell, largest: float) -> Iterator[list[str]]:
    """Yields the colours of a tensor that is too large to be shown as numbers."""
    value = cell.value
    if value is not None and "norm" in cell.words and largest > 0:
        yield [colour(entry / largest) for entry in value.entries]


def colour(part: float) -> str:
    """Returns a colour for a number from -1 to 1; grey for none."""
    if part != part or abs(part) == float("inf"):
        return "rgba(127,127,127,1)"
    return f"rgba({COLOURS[part < 0]},{min(abs(part), 1):.2f})"
