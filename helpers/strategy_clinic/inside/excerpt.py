"""Chooses the rows of one step that fit into a picture, under the lines of the program that make them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

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

    @property
    def headline(self) -> str:
        if self.tables.first is None:
            return f"{self.name}, {self.step.title}: nothing differs"
        return f"{self.name}, {self.step.title}: {self.tables.first[1].mark}"

    @property
    def more(self) -> str:
        rows = "row that differs" if self.left_out == 1 else "rows that differ"
        return f"and {self.left_out} more {rows}" if self.left_out else ""

    @property
    def groups(self) -> Iterator[tuple[str, list[Row]]]:
        return grouped(self.rows, self.tables)


def excerpt_of(name: str, tables: Tables, like: Excerpt | None = None) -> Excerpt:
    """Returns the rows of the step in which the runs part; else those of another excerpt's step that are like its rows."""
    if tables.first:
        step = tables.first[0]
        rows = around_first(step, tables.first[1])
    else:
        step = next(
            (each for each in tables.steps if like and is_same(each, like.step)), tables.steps[0]
        )
        rows = alike(step, like.rows if like else ())
    return Excerpt(name, tables, step, rows, len([row for row in step.marked if row not in rows]))


def is_same(one: Step, other: Step) -> bool:
    return (one.number, one.turn) == (other.number, other.turn)


def around_first(step: Step, first: Row) -> tuple[Row, ...]:
    """Returns the first row that differs, what comes before it, and some of what differs after it."""
    place = step.rows.index(first)
    before = [row for row in step.rows[:place] if row.stage.is_in_picture]
    after = [row for row in step.rows[place + 1 :] if row.mark]
    return (*before[-MOST_BEFORE:], first, *after[:MOST_AFTER])


def alike(step: Step, others: Sequence[Row]) -> tuple[Row, ...]:
    """Returns rows of the same stages with names that end as theirs do; metrics, too, where these are few."""
    names, stages = {tail(row) for row in others}, {row.stage.key for row in others}
    found = [row for row in step.rows if row.stage.key in stages and tail(row) in names]
    found = found or [row for row in step.rows if row.stage.is_in_picture] or [*step.rows]
    if len(found) < FEW:
        found += [row for row in step.rows if row.stage.key == "metric" and row not in found]
    return tuple(found[: MOST_BEFORE + 1 + MOST_AFTER])


def tail(row: Row) -> str:
    return row.name.rpartition("/")[2]


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
    code = tables.source[frame.line - 1].partition("  #")[0].strip()
    return f"{tables.name_of(frame) if tables.places else frame.line}  {code}"
