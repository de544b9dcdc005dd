"""Chooses the rows of one step that fit into a picture, under the lines of the program that make them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from textwrap import shorten

from .record import IN_A_STEP
from .stages import MOST_QUOTED
from .tables import Row, Step, Tables

MOST_BEFORE, MOST_AFTER = 7, 3  # rows, of the first one that differs
FEW = 3


@dataclass(frozen=True)
class Excerpt:
    """The rows that say where the runs part, or those that are alike in another program's run."""

    name: str  # of the program
    tables: Tables
    step: Step
    rows: tuple[Row, ...]
    left_out: int  # rows of the step that differ, too

    wanted: str = ""  # the title of a step that another program makes, and this one does not

    @property
    def headline(self) -> str:
        name = f"{self.name}, which makes no {self.wanted}" if self.wanted else self.name
        return (
            f"{name}, {self.step.title}{next(map(in_short, self.step.marked), ': nothing differs')}"
        )

    @property
    def more(self) -> str:
        rows = "row that differs" if self.left_out == 1 else "rows that differ"
        return f"and {self.left_out} more {rows}" if self.left_out else ""

    @property
    def groups(self) -> Iterator[tuple[str, list[Row]]]:
        return grouped(self.rows, self.tables)


def in_short(row: Row) -> str:
    """Returns what differs first; of how a program ends, only what it is on several replicas."""
    value = row.cells[0]
    if row.stage.key == "end" and value is not None:
        return f": it ends with “{shorten(value.words, MOST_QUOTED, placeholder=' …')}”"
    return f", at {row.title}: {row.mark}"


def excerpt_of(name: str, tables: Tables, like: Excerpt | None = None) -> Excerpt:
    """Returns rows of the step in which the runs part, or of another excerpt's step, around what differs or like its rows."""
    step = step_like(tables, like.step) if like else step_that_parts(tables)
    rows = around_first(step) if step.marked else alike(step, like.rows if like else ())
    wanted = like.step.title if like and like.step.title != step.title else ""
    left_out = len([row for row in step.marked if row not in rows])
    return Excerpt(name, tables, step, rows, left_out, wanted)


def step_that_parts(tables: Tables) -> Step:
    return tables.first[0] if tables.first else tables.steps[0]


def step_like(tables: Tables, step: Step) -> Step:
    """Returns the step of the same number, or the last one."""
    same = (each for each in tables.steps if each.title == step.title)
    return next(same, tables.steps[-1])


def around_first(step: Step) -> tuple[Row, ...]:
    """Returns the first row that differs, what comes before it, and some of what differs after it."""
    first = step.marked[0]
    place = step.rows.index(first)
    came = step.rows[:place]
    before = [row for row in came if row.stage.is_in_picture or leads_to(row, first, came[-1])]
    after = [row for row in step.rows[place + 1 :] if row.mark]
    return (*before[-MOST_BEFORE:], first, *after[:MOST_AFTER])


def leads_to(row: Row, first: Row, last: Row) -> bool:
    """Tells whether a row says why a program ends otherwise.

    What replicas return may be of no use to it, and what a step came to last may be what fails in it.
    """
    if first.stage.key != "end":
        return False
    return row.stage.key == "returned" or (first.how == IN_A_STEP and row.stage is last.stage)


def alike(step: Step, others: Sequence[Row]) -> tuple[Row, ...]:
    """Returns rows of the same stages with names that end as theirs do; metrics, too, where these are few."""
    kinds = set(map(kind, others))
    found = [row for row in step.rows if kind(row) in kinds]
    if not any(row.stage.is_in_picture for row in found):
        found = [row for row in step.rows if row.stage.is_in_picture] + found
    found = found or [*step.rows]
    if len(found) < FEW:
        found += [row for row in step.rows if row.stage.key == "metric" and row not in found]
    most = max(len(others), FEW + 1) if others else MOST_BEFORE + 1 + MOST_AFTER
    return tuple(found[:most])


def kind(row: Row) -> tuple[str, str]:
    """Returns the stage, and of the name the end, which is the same in a program with other layers."""
    return row.stage.key, row.name.rpartition("/")[2]


def grouped(rows: Iterable[Row], tables: Tables) -> Iterator[tuple[str, list[Row]]]:
    """Yields lines of the program with the rows that each makes."""
    for code, made in groupby(rows, lambda row: code_of(row, tables)):
        yield code, list(made)


def code_of(row: Row, tables: Tables) -> str:
    """Returns the number and the code of the line that makes a row, without the comment at its end."""
    if not row.lines:
        return ""
    frame = row.lines[0]
    if frame.path != tables.path:
        return tables.name_of(frame)
    code = without_comment(tables.source[frame.line - 1]).strip()
    return f"{tables.name_of(frame) if tables.places else frame.line}  {code}"


def without_comment(line: str) -> str:
    return line.partition("  #")[0]
