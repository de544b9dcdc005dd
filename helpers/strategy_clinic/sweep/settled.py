"""How each difference is settled: intended and documented, a bug with its report, or within what arithmetic allows."""

import functools
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from ..base import files
from .record import RecordedCell

REPOSITORY_FOLDER = "upstream"  # where the reports of bugs are


class Why(StrEnum):
    INTENDED = "intended"  # a sentence of the documentation says it
    BUG = "bug"
    NUMERICAL = "numerical"
    OTHER = "not about replicas"  # an error of the row or of one device


@dataclass(frozen=True)
class Settled:
    """A row of settled.toml: for which cells and values, why they differ, and where that is written."""

    why: Why
    says: str
    cells: tuple[str, ...] = ("*",)
    values: tuple[str, ...] = ()  # only these values differ; none: any
    in_turn: bool = False  # one device that takes the parts in turn must give the same
    any_size: bool = False  # the numbers are other ones in each run
    report: str = ""  # the name of a file in upstream/
    place: str = ""  # the page that has the sentence

    def explains(self, cell: RecordedCell) -> bool:
        """Returns whether the row is about the cell, and about every value that differs there."""
        if self.in_turn and not cell.in_turn:
            return False
        if self.values and not (cell.values and set(cell.values) <= set(self.values)):
            return False
        return any(fnmatchcase(cell.cell, pattern) for pattern in self.cells)

    @property
    def reference(self) -> str:
        return f"{REPOSITORY_FOLDER}/{self.report}.md" if self.report else self.place


@functools.cache
def settled() -> tuple[Settled, ...]:
    text = (files.package() / "sweep" / "settled.toml").read_text()
    return tuple(
        Settled(
            **row
            | {name: tuple(row[name]) for name in ("cells", "values") if name in row}
            | {"why": Why(row["why"])}
        )
        for row in files.toml(text)["settled"]
    )


def explanation(cell: RecordedCell) -> Settled | None:
    """Returns the first row that explains a difference."""
    return next((row for row in settled() if row.explains(cell)), None)


def unexplained(cells: list[RecordedCell]) -> list[RecordedCell]:
    return [cell for cell in cells if cell.to_settle and not explanation(cell)]


def has_a_size(cell: RecordedCell) -> bool:
    """Returns whether the size of a difference is the same in each run."""
    row = explanation(cell)
    return row is None or not row.any_size
