"""Makes of two records, of several replicas and of one device, tables: steps with rows, and what differs in them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from ..observer.events import Frame, Stack
from . import stages
from .record import END, TOGETHER, UNSEEN, Seen
from .stages import Held, Stage
from .values import Value

MANY_NUMBERS = 1_000_000  # in variables, of which a reader is told that norms are shown
NORMS = "the single numbers of the {:,} that are trained; their norms are shown, and sums of blocks compared"
TURNS = (
    "variables between the steps that one call makes, as with steps_per_execution; they are shown after "
    "the last step, and of a call's steps the first 6"
)
NO_GRADIENT = 1e-5  # of the largest one: what Adam makes of rounding is not compared
AFTER_GRADIENT = {"update", "variable", "slot"}
TOTAL, COUNT = "total", "count"  # the end of the names of two variables whose quotient is a mean
AT_THE_END = {"update", "variable", "state", "slot", "setting", "counter", "random", "metric"}
ORDER = {key: place for place, key in enumerate(stages.TABLE)}
Key = tuple[str, str, Stack]  # a stage, a name, and the innermost line
Place = tuple[int, int]  # a step and its turn


@dataclass(frozen=True)
class Row:
    """One tensor in one stage of a step."""

    stage: Stage
    name: str
    lines: Stack
    how: str
    cells: tuple[Value | None, ...]  # of the replicas; one if they hold it together
    alone: Value | None  # of one device with the same examples
    mark: str = ""  # what differs, in words
    compared: str = ""  # a word of `stages.COMPARISONS`; none if nothing is compared

    @property
    def is_together(self) -> bool:
        return self.stage.key in ("reported", "end")

    @property
    def has_how(self) -> bool:
        return self.how not in ("", "NONE")

    @property
    def title(self) -> str:
        how = f" ({self.how})" if self.has_how else ""
        return f"{self.stage.title}{how}: {self.name}"


@dataclass(frozen=True)
class Step:
    number: int
    turn: int
    rows: tuple[Row, ...]

    @property
    def title(self) -> str:
        return f"step {self.number}" + (f", part {self.turn + 1}" if self.turn else "")

    @property
    def marked(self) -> list[Row]:
        return [row for row in self.rows if row.mark]


@dataclass(frozen=True)
class Tables:
    """What each replica held in the first steps of a program."""

    program: str
    replicas: int
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()  # what is not seen
    path: str = ""  # of the file whose lines are shown
    source: tuple[str, ...] = ()  # its lines
    places: tuple[
        str, ...
    ] = ()  # what each is called, where it is not by its number: a line of a cell
    workers: int = 1  # processes, each with its part of the replicas
    ends: tuple[str, ...] = ()  # how runs have failed

    @cached_property
    def first(self) -> tuple[Step, Row] | None:
        """The first row in which something differs."""
        found = ((step, row) for step in self.steps for row in step.marked)
        return next(found, None)

    @property
    def columns(self) -> list[str]:
        names = [f"replica {each}" for each in range(self.replicas)]
        if self.workers > 1:
            names = [f"{name}, worker {each}" for each, name in enumerate(names)]
        return [*names, "one device"]

    @property
    def headline(self) -> str:
        return "; ".join([*self.ends, self.comparison])

    @property
    def comparison(self) -> str:
        if not self.steps:
            return "no step was seen"
        if self.first is None:
            until_then = " until then" if self.ends else ""
            return f"nothing differs in {counted(len(self.steps), 'step')}{until_then}"
        step, row = self.first
        return f"the runs part in {step.title}, at {row.title}: {row.mark}"

    @property
    def place(self) -> Frame | None:
        """The line of the program that makes the first row that differs."""
        return self.first[1].lines[0] if self.first and self.first[1].lines else None

    def name_of(self, frame: Frame) -> str:
        """Returns what the reader calls a line of the program."""
        if self.places and frame.path == self.path:
            return self.places[frame.line - 1]
        return f"{os.path.basename(frame.path)}, line {frame.line}"


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def tables_of(
    program: str,
    several: Iterable[Seen],
    one: Iterable[Seen],
    replicas: int,
    notes: Sequence[str] = (),
    is_cut: bool = False,
) -> Tables:
    """Returns the tables of two runs; `is_cut` tells that a failure has ended the one of several replicas in a step."""
    mine, unseen = split(several)
    places, alone = by_place(mine), by_place(split(one)[0])
    rows_at = {
        place: rows_of(rows, alone.get(place, {}), replicas) for place, rows in places.items()
    }
    end = rows_at.pop((END, 0), ())
    steps = [Step(*place, rows) for place, rows in rows_at.items()]
    steps = with_end(without_halves(steps) if is_cut and steps else steps, end)
    said = dict.fromkeys([*notes, *(each.name for each in unseen), *limits_of(steps)])
    return Tables(program, replicas, tuple(steps), tuple(said))


def with_end(steps: list[Step], end: tuple[Row, ...]) -> list[Step]:
    """Returns steps with how the program ended below the last one; where none was made, alone if that differs."""
    if steps:
        return [*steps[:-1], replace(steps[-1], rows=(*steps[-1].rows, *end))]
    return [Step(1, 0, end)] if any(row.mark for row in end) else []


def without_halves(steps: list[Step]) -> list[Step]:
    """Returns steps of which a failure has ended the last one: in it, what some replicas had not come to is not compared."""
    *whole, last = steps
    rows = (replace(row, mark="", compared="") if None in row.cells else row for row in last.rows)
    return [*whole, replace(last, rows=tuple(rows))]


def limits_of(steps: Sequence[Step]) -> Iterator[str]:
    """Yields sentences about what these steps do not show."""
    weights = max((numbers_in(step) for step in steps), default=0)
    if weights >= MANY_NUMBERS:
        yield NORMS.format(weights)
    if any(step.turn for step in steps):
        yield TURNS


def numbers_in(step: Step) -> int:
    """Returns how many numbers the trained variables of one replica have."""
    values = [row.cells[0] for row in step.rows if row.stage.key == "variable"]
    return sum(value.size for value in values if value is not None)


def split(record: Iterable[Seen]) -> tuple[list[Seen], list[Seen]]:
    """Returns what was seen, and what was not."""
    seen = list(record)
    unseen = [each for each in seen if each.stage == UNSEEN]
    return [each for each in seen if each.stage in ORDER], unseen


def by_place(record: Iterable[Seen]) -> dict[Place, dict[Key, list[Seen]]]:
    """Returns what was seen by step and turn, and there by row; variables are in the last turn of their step."""
    seen = sorted(record, key=lambda each: (each.step, ORDER[each.stage]))
    last = {step: max(each.turn for each in group) for step, group in groupby(seen, get_step)}
    places: dict[Place, dict[Key, list[Seen]]] = {}
    for each in seen:
        turn = last[each.step] if each.stage in AT_THE_END else each.turn
        rows = places.setdefault((each.step, turn), {})
        line = (
            () if each.step == END else each.lines[:1]
        )  # an error has one, what is printed has none
        rows.setdefault((each.stage, each.name, line), []).append(each)
    return dict(sorted(places.items()))


def get_step(seen: Seen) -> int:
    return seen.step


def rows_of(
    mine: dict[Key, list[Seen]], alone: dict[Key, list[Seen]], replicas: int
) -> tuple[Row, ...]:
    rows = [row_of(key[1], seen, alone.get(key, []), replicas) for key, seen in mine.items()]
    scales, how = scales_of(rows), how_of_gradients(rows)
    without, means = names_without_gradient(rows, scales), means_of(rows)
    return tuple(
        row
        if row.stage.key in AFTER_GRADIENT and row.name in without
        else replace(row, mark=means[place], compared="quotient")
        if place in means
        else marked(row, how if row.stage.is_of_parts else row.how, scales)
        for place, row in enumerate(rows)
    )


def means_of(rows: Sequence[Row]) -> dict[int, str]:
    """Returns what differs, by the rows' places, where a total and a count are a mean: only their quotient is compared."""
    marks: dict[int, str] = {}
    places = {(row.stage, row.name): place for place, row in enumerate(rows)}
    for (stage, name), place in places.items():
        of_count = places.get((stage, name.removesuffix(TOTAL) + COUNT))
        if not name.endswith(TOTAL) or of_count is None:
            continue
        mine, theirs = quotients(rows[place], rows[of_count])
        if mine is not None and theirs is not None:
            same = abs(mine - theirs) <= stages.SAME * abs(theirs)
            words = f"{TOTAL} / {COUNT} is {mine:.4g}, on one device {theirs:.4g}"
            marks |= dict.fromkeys((place, of_count), "" if same else words)
    return marks


def quotients(total: Row, count: Row) -> tuple[float | None, float | None]:
    """Returns a mean of all replicas and that of one device; None for what is not known."""
    return quotient(total.cells, count.cells), quotient((total.alone,), (count.alone,))


def quotient(totals: Sequence[Value | None], counts: Sequence[Value | None]) -> float | None:
    above, below = (
        [each.entries[0] for each in values if each is not None and each.size == 1]
        for values in (totals, counts)
    )
    return sum(above) / sum(below) if above and len(above) == len(below) and sum(below) else None


def how_of_gradients(rows: Sequence[Row]) -> str:
    """Returns how the gradients of a step are aggregated; nothing if they are not, or in several ways."""
    names = {row.name for row in rows if row.stage.key == "gradient"}
    hows = {row.how for row in rows if row.stage.key == "aggregated" and row.name in names}
    return hows.pop() if len(hows) == 1 else ""


def row_of(name: str, seen: list[Seen], alone: list[Seen], replicas: int) -> Row:
    first, known = seen[0], {each.replica: each.value for each in seen[::-1]}
    places = (TOGETHER,) if TOGETHER in known else range(replicas)
    cells = tuple(known.get(place) for place in places)
    one = alone[0].value if alone else None
    return Row(stages.TABLE[first.stage], name, first.lines, first.how, cells, one)


def scales_of(rows: Sequence[Row]) -> dict[str, float]:
    """Returns the largest number of each stage."""
    scales: dict[str, float] = {}
    for row in rows:
        scales[row.stage.key] = max(scales.get(row.stage.key, 0.0), scale_of(row))
    return scales


def scale_of(row: Row) -> float:
    values = [value for value in (*row.cells, row.alone) if value is not None]
    entries = (abs(entry) for value in values for entry in value.entries)
    return max((entry for entry in entries if math.isfinite(entry)), default=0.0)


def names_without_gradient(rows: Sequence[Row], scales: dict[str, float]) -> set[str]:
    """Returns the names of variables whose gradient is 0 but for rounding, as that of a bias before normalization is."""
    return {
        row.name
        for row in rows
        if row.stage.key == "gradient"
        if scale_of(row) < NO_GRADIENT * scales["gradient"]
    }


def marked(row: Row, how: str, scales: dict[str, float]) -> Row:
    """Returns a row with what differs in it. Its numbers are compared beside the largest one of the row, or of its stage."""
    scale = scales[row.stage.key] if row.stage.has_one_scale else scale_of(row)
    held = Held(row.cells, row.alone, how, scale)
    return replace(row, mark=row.stage.rule(held), compared=row.stage.comparison(held))
