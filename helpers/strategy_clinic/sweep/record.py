"""The record of a sweep: a file for each version of TensorFlow, with a line for each cell."""

import datetime
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ..base import files
from ..base.files import write_whole
from ..base.json_lines import line_by_line
from ..base.package_versions import version_name
from ..setups import runtime
from .code import code_of
from .differences import DIFFERENT, Outcome, Result
from .items import Cell

GROWS = 3  # times the size of a difference, from which on it is another one
PACKAGES = ("tensorflow", "keras", "tf_keras")


@dataclass(frozen=True)
class RecordedCell:
    """The result of a cell, and of which code it is."""

    cell: str
    code: str
    outcome: Outcome
    values: list[str] = field(default_factory=list)
    says: str = ""
    size: float | None = None
    in_turn: bool = False
    rounding: float | None = None
    seconds: float | None = None

    @property
    def differs(self) -> bool:
        return self.outcome in DIFFERENT

    @property
    def to_settle(self) -> bool:
        """Returns whether a row must say why: where replicas differ, and where one device raises, so that nothing is compared."""
        return self.outcome is not Outcome.SAME

    @property
    def seen(self) -> tuple[str, list[str], bool]:
        """Returns what two records are compared by, beside the size of the difference."""
        return (
            self.outcome,
            [name.removesuffix(" not finite") for name in self.values],
            self.in_turn,
        )

    def of_another_size(self, other: "RecordedCell") -> bool:
        """Returns whether the difference has grown or shrunk by more than another processor's last digits would explain."""
        if not self.size or not other.size:
            return False
        return not 1 / GROWS < self.size / other.size < GROWS


@dataclass
class SweepRecord:
    """What a sweep has found on these versions: its cells by name, and the classes of Keras without a row."""

    versions: dict[str, str]
    date: str
    seconds: int = 0
    without_row: list[str] = field(default_factory=list)
    cells: dict[str, RecordedCell] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return version_name(self.versions["tensorflow"])

    @property
    def to_settle(self) -> list[RecordedCell]:
        return [cell for cell in self.cells.values() if cell.to_settle]

    def holds(self, cell: Cell) -> bool:
        stored = self.cells.get(cell.name)
        return stored is not None and stored.code == code_of(cell.item)

    def add(self, cells: list[Cell], results: dict[str, Result]) -> None:
        for cell in cells:
            self.cells[cell.name] = RecordedCell(
                cell.name, code_of(cell.item), **vars(results[cell.name])
            )

    def keep_only(self, names: set[str]) -> None:
        """Drops the cells of rows that are no longer in the tables."""
        self.cells = {name: cell for name, cell in self.cells.items() if name in names}


def new_record() -> SweepRecord:
    versions = {name: runtime.versions()[name] for name in PACKAGES}
    return SweepRecord(versions, datetime.date.today().isoformat())


# As files


def record_file(name: str) -> Path:
    return files.notebooks() / "records" / f"sweep-tensorflow-{name}.json"


def read_record(name: str) -> SweepRecord | None:
    path = record_file(name)
    return parse_record(path.read_text()) if path.exists() else None


def parse_record(text: str) -> SweepRecord:
    stored = json.loads(text)
    cells = [
        RecordedCell(**line | {"outcome": Outcome(line["outcome"])}) for line in stored["cells"]
    ]
    return SweepRecord(**stored | {"cells": {cell.cell: cell for cell in cells}})


def write_record(record: SweepRecord, path: Path | None = None) -> None:
    path = path or record_file(record.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [asdict(cell) for _, cell in sorted(record.cells.items())]
    write_whole(path, line_by_line(asdict(record) | {"cells": lines}))


def records() -> list[SweepRecord]:
    """Returns all stored records, the oldest version first."""
    paths = record_file("*").parent.glob(record_file("*").name)
    found = [parse_record(path.read_text()) for path in paths]
    return sorted(found, key=lambda record: version_key(record.versions["tensorflow"]))


def version_key(tensorflow: str) -> tuple[int, ...]:
    return tuple(int(part) for part in tensorflow.split(".")[:2])


def nearest(here: SweepRecord) -> SweepRecord | None:
    """Returns the record of these versions, or of the newest others."""
    found = records()
    return next((each for each in found if each.name == here.name), found[-1] if found else None)


# Compared


def news(
    before: SweepRecord,
    now: SweepRecord,
    has_a_size: Callable[[RecordedCell], bool] = lambda cell: True,
) -> list[str]:
    """Returns a line for each difference that is new, gone or another one, among the cells of both."""
    lines = [
        f"news: {name} has no row" for name in now.without_row if name not in before.without_row
    ]
    for name, cell in now.cells.items():
        was = before.cells.get(name)
        if was is None:
            if cell.differs:
                lines.append(f"news: {name} is not in the record, and {cell.outcome}: {cell.says}")
        elif is_another(was, cell, has_a_size(was)):
            lines.append(f"news: {name}: was {in_words(was)}; is {in_words(cell)}")
    return lines


def is_another(was: RecordedCell, now: RecordedCell, has_a_size: bool) -> bool:
    """Returns whether a cell gives something else than is recorded; sizes count if they are the same in each run."""
    is_seen = was.seen == now.seen or (was.rounding is None and names_fewer(was, now))
    return not is_seen or (has_a_size and was.of_another_size(now))


def names_fewer(was: RecordedCell, now: RecordedCell) -> bool:
    """Returns whether a cell that is recorded without what rounding does, with a coarser tolerance, has only more values now."""
    (outcome, values, in_turn), (now_outcome, now_values, now_in_turn) = was.seen, now.seen
    return (outcome, in_turn) == (now_outcome, now_in_turn) and set(values) < set(now_values)


def in_words(cell: RecordedCell) -> str:
    return f"{cell.outcome} ({cell.says})" if cell.says else str(cell.outcome)
