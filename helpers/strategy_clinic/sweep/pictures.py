"""The record of a sweep as HTML: classes by numbers of replicas, and below the differences in words."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..base.templates import from_template
from .items import KERAS, Kind
from .record import RecordedCell, SweepRecord, records
from .report import STATES, groups, state_of
from .settled import Settled

COUNTS = (1, 2, 4)
COLUMNS = [(keras, count) for keras in KERAS for count in COUNTS]
# How a state looks: its sign, its colour, and what it says.
LOOKS = {
    "same": ("✔", "#22694c", "as on one device"),
    "bug": ("✖", "#b3261e", "another result: a bug, with a report"),
    "intended": ("▲", "#8f5400", "another result, as the documentation says"),
    "numerical": ("≈", "#33618d", "the same but for arithmetic"),
    "not about replicas": ("○", "#5f5f5f", "it cannot run, for another reason"),
    "not explained": ("?", "#6750a4", "another result, not explained"),
    "unavailable": ("○", "#5f5f5f", "one device cannot run it either"),
}
Table = dict[str, dict[str, dict[tuple[int, int], list[RecordedCell]]]]


@dataclass(frozen=True)
class Explained:
    """Why some cells differ, in words, where that is written, and which cells they are."""

    why: str
    says: str
    source: str  # what the link leads to
    link: str
    rows: list[str]
    cells: int


def newest() -> SweepRecord | None:
    found = records()
    return found[-1] if found else None


def sweep_html(address_of_report: Callable[[str], str], level: int) -> str:
    """Returns the newest record as a table of its differences and tables by kind; nothing without a record.

    `level` is that of its headings.
    """
    record = newest()
    if record is None:
        return ""
    return from_template(
        "sweep/templates/sweep.html",
        versions=record.versions,
        total=len(record.cells),
        columns=COLUMNS,
        tables=[(kind, rows_of(rows)) for kind, rows in tabled(record).items()],
        looks=LOOKS,
        explained=explained(record, address_of_report),
        level=level,
    )


def tabled(record: SweepRecord) -> Table:
    found: Table = {kind.value: {} for kind in Kind}
    for cell in record.cells.values():
        kind, name, option, *_, replicas, keras = cell.cell.split("/")
        place = int(keras[-1]), int(replicas[1:])
        row = found[kind].setdefault(f"{name}, {option}", {})
        row.setdefault(place, []).append(cell)
    return {kind: rows for kind, rows in found.items() if rows}


def rows_of(rows: dict[str, dict[tuple[int, int], list[RecordedCell]]]) -> list[Any]:
    """Returns each row with the sign and the words of its cells, in the order of the columns."""
    return [
        (name, [signs(row.get(place, [])) for place in COLUMNS])
        for name, row in sorted(rows.items())
    ]


def signs(cells: list[RecordedCell]) -> tuple[str, str]:
    """Returns the worst state of some cells, and what differs there."""
    states = [state_of(cell) for cell in cells]
    order = [state for state in reversed(STATES) if state != "unavailable"]
    worst = next((state for state in order if state in states), states[0] if states else "")
    words = "; ".join(
        f"{how_of(cell)}: {cell.says or cell.outcome}" for cell in cells if cell.differs
    )
    return worst, words or worst or "not run"


def how_of(cell: RecordedCell) -> str:
    *_, how, parts, _, _ = cell.cell.split("/")
    return f"{how}, {parts} parts"


def explained(record: SweepRecord, address_of_report: Callable[[str], str]) -> list[Explained]:
    """Returns each explanation, with bugs first, and of one kind those first that explain most."""
    found = [
        explanation_of(row, cells, address_of_report)
        for row, cells in groups(record.to_settle).items()
    ]
    order = ["not explained", *STATES]
    return sorted(found, key=lambda each: (order.index(each.why), -each.cells))


def explanation_of(
    row: Settled | None, cells: list[RecordedCell], address_of_report: Callable[[str], str]
) -> Explained:
    rows = sorted({row_of(cell) for cell in cells})
    if row is None:
        return Explained("not explained", "", "", "", rows, len(cells))
    source, link = "source", row.place
    if row.report:
        source, link = "report", address_of_report(row.report)
    return Explained(str(row.why), row.says, source, link, rows, len(cells))


def row_of(cell: RecordedCell) -> str:
    kind, name, option, *_ = cell.cell.split("/")
    return f"{kind} {name}, {option}"
