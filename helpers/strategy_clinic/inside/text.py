"""The tables as text, for a terminal, a stored notebook and a screen reader."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from .excerpt import Excerpt
from .stages import COMPARISONS
from .tables import Row, Step, Tables
from .values import Value

MOST_NUMBERS = (
    4  # that a cell has; of more, the norm is shown, unless all numbers of its row are short
)
SHORT = 31  # letters of the numbers in a cell: two lines of a box in a picture
NOTHING, DIFFERS = "·", "≠"
LONGEST = 56
MOST_WORDS = 28  # letters, of words in a cell
FITS = "≠: does not fit one device, or the copies disagree. No sign: it fits as the column “compared” says; · is not compared."
NORM = f"norm: the root of the sum of squares, shown of more than {MOST_NUMBERS} numbers, unless they are short"
SIGNS = {"[": "[0]: a tensor of one number that is no scalar, such as one example", "norm": NORM}
DRAWN = (
    "drawn",
    "random",
)  # stages whose numbers mean nothing: it is said which of them are the same


def legend_of(rows: Iterable[Row]) -> Iterator[str]:
    """Yields what the words in these rows mean."""
    plain = [*rows]
    known = {row.compared for row in plain}
    yield from (f"{word}: {about}" for word, about in COMPARISONS.items() if word in known)
    shown_words = [words for row in plain if row.stage.key != "end" for words in words_of(row)]
    yield from (about for sign, about in SIGNS.items() if any(sign in each for each in shown_words))


def in_words(tables: Tables) -> str:
    """Returns all tables."""
    return "\n".join(lines_of(tables, tables.steps))


def in_short(tables: Tables) -> str:
    """Returns the step in which the runs part, or the first one."""
    step = tables.first[0] if tables.first else None
    return "\n".join(lines_of(tables, [step] if step else tables.steps[:1]))


def lines_of(tables: Tables, steps: Iterable[Step]) -> Iterator[str]:
    yield f"{tables.program}: {tables.headline}"
    if tables.place:
        yield f"made by {tables.name_of(tables.place)}"
    yield from (f"Not seen: {note}." for note in tables.notes)
    shown_steps = [*steps]
    for step in shown_steps:
        yield ""
        yield from table_of(step, tables)
    if shown_steps:
        rows = [row for step in shown_steps for row in step.rows]
        yield from ("", FITS, *legend_of(rows))


def table_of(step: Step, tables: Tables) -> list[str]:
    head = ["", step.title, *columns_of(tables), "what differs"]
    return aligned([head, *(cells_of(row, tables) for row in step.rows)])


def aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def cells_of(row: Row, tables: Tables) -> list[str]:
    *mine, alone = values_in(row, tables)
    return [DIFFERS if row.mark else " ", label(row), *mine, compared_in(row), alone, row.mark]


def columns_of(tables: Tables) -> list[str]:
    """Returns the heads of all columns but that of the names: in each form of the tables these, in this order."""
    *mine, alone = tables.columns
    return [*mine, "compared", alone]


def compared_in(row: Row) -> str:
    return row.compared or NOTHING


def excerpt_in_words(excerpt: Excerpt, below: Iterable[str] = ()) -> str:
    """Returns the rows of an excerpt under the lines of the program that make them, and more lines below them."""
    tables, groups = excerpt.tables, list(excerpt.groups)
    head = ["", "", *columns_of(tables), ""]
    rows = aligned([head, *(cells_of(row, tables) for _, inside in groups for row in inside)])
    lines = [excerpt.headline, rows.pop(0)]
    for code, inside in groups:
        lines += [f"line {code}" if code else "", *rows[: len(inside)]]
        rows = rows[len(inside) :]
    return "\n".join([*lines, *filter(None, [excerpt.more]), *below])


def values_in(row: Row, tables: Tables) -> list[str]:
    """Returns what is shown in each column; what the replicas hold together is in the first."""
    *mine, alone = words_of(row)
    return [*mine, *[NOTHING] * (tables.replicas - len(mine)), alone]


def words_of(row: Row) -> list[str]:
    """Returns what is shown of each value: all numbers or none if a row has more than a few."""
    values = [*row.cells, row.alone]
    if row.stage.key in DRAWN:
        return lettered(values)
    return [shown(each, all(map(is_short, values))) for each in values]


def lettered(values: list[Value | None]) -> list[str]:
    """Returns a letter for each tensor, the same one for the same numbers."""
    known = list(dict.fromkeys(each.entries for each in values if each))
    letters = {entries: chr(ord("A") + place % 26) for place, entries in enumerate(known)}
    return [f"numbers {letters[each.entries]}" if each else NOTHING for each in values]


def label(row: Row) -> str:
    """Returns the title of a row; of a long name its end, which says most."""
    room = LONGEST - (len(row.title) - len(row.name))
    name = row.name if len(row.name) <= room else f"…{row.name[1 - room :]}"
    return row.title[: -len(row.name)] + name


def is_short(value: Value | None) -> bool:
    """Tells whether the numbers of a tensor are all known, and fit into a cell."""
    return value is None or (value.is_whole and len(numbers_of(value)) <= SHORT)


def numbers_of(value: Value) -> str:
    """Returns all numbers of a tensor; one of a tensor that is no scalar in brackets, since that may be what differs."""
    words = " ".join(map(number, value.entries))
    return f"[{words}]" if value.shape and value.size == 1 else words


def shown(value: Value | None, has_room: bool = False) -> str:
    """Returns the numbers of a small tensor, and of a larger one its shape and its norm, unless there is room for them."""
    if value is None:
        return NOTHING
    if value.words:
        return shortened(value.words)
    if not value.size:
        return f"none ({shape_of(value)})"
    if not value.entries:
        return f"{shape_of(value)} {value.dtype}"
    if value.is_whole and (has_room or len(value.entries) <= MOST_NUMBERS):
        return numbers_of(value)
    size = f"{value.size} numbers" if len(value.shape) == 1 else shape_of(value)
    return f"{size}, norm {number(value.norm)}"


def shortened(words: str) -> str:
    return words if len(words) <= MOST_WORDS else f"{words[: MOST_WORDS - 1]}…"


def number(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    return f"{value:.4g}" if abs(value) >= 1e-12 else "0"


def shape_of(value: Value) -> str:
    return "×".join(map(str, value.shape)) or "number"
