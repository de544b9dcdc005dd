"""The report of a sweep, as text and as data: counts, then the differences by what explains them."""

from collections import Counter
from dataclasses import asdict
from typing import Any

from ..base.display import text_table
from .record import RecordedCell, SweepRecord
from .settled import Settled, explanation

SHOWN = 3  # cells of an explanation that are listed


def in_words(record: SweepRecord) -> str:
    """Returns the whole report; differences without an explanation come first, each with its cell."""
    blocks = [counts_table(record)]
    grouped = groups(record.to_settle)
    for row, cells in sorted(
        grouped.items(), key=lambda pair: (pair[0] is not None, -len(pair[1]))
    ):
        lines = [f"{heading(row)}: {len(cells)} cells"]
        shown = cells[:SHOWN] if row else cells
        lines += [
            f"  {cell.cell}: {cell.outcome}{': ' if cell.says else ''}{cell.says}" for cell in shown
        ]
        if len(cells) > len(shown):
            lines.append(f"  and {len(cells) - len(shown)} more")
        blocks.append("\n".join(lines))
    blocks += [f"no row for {name}" for name in record.without_row]
    return "\n\n".join(blocks)


def heading(row: Settled | None) -> str:
    if row is None:
        return "not explained"
    where = f" ({row.reference})" if row.reference else ""
    return f"{row.why}: {row.says}{where}"


def groups(cells: list[RecordedCell]) -> dict[Settled | None, list[RecordedCell]]:
    found: dict[Settled | None, list[RecordedCell]] = {}
    for cell in cells:
        found.setdefault(explanation(cell), []).append(cell)
    return found


def counts(record: SweepRecord) -> dict[tuple[str, str], Counter[str]]:
    """Returns by kind and version of Keras how many cells have each outcome, with the reason of each difference."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for cell in record.cells.values():
        kind, *_, keras = cell.cell.split("/")
        found.setdefault((kind, keras[-1]), Counter())[state_of(cell)] += 1
    return dict(sorted(found.items()))


def state_of(cell: RecordedCell) -> str:
    """Returns 'same', or why a cell is not, or 'not explained'."""
    if not cell.to_settle:
        return str(cell.outcome)
    row = explanation(cell)
    return str(row.why) if row else "not explained"


STATES = (
    "same",
    "bug",
    "intended",
    "numerical",
    "not about replicas",
    "not explained",
    "unavailable",
)


def counts_table(record: SweepRecord) -> str:
    found = counts(record)
    states = [state for state in STATES if any(counter[state] for counter in found.values())]
    rows = [
        [kind, keras, str(counter.total()), *[str(counter[state]) for state in states]]
        for (kind, keras), counter in found.items()
    ]
    total: Counter[str] = sum(found.values(), Counter())
    last = ["all", "", str(total.total()), *[str(total[state]) for state in states]]
    return text_table([["kind", "Keras", "cells", *states], *rows, last])


def as_data(record: SweepRecord, news: list[str]) -> dict[str, Any]:
    """Returns the report as JSON's values."""
    return {
        "versions": record.versions,
        "seconds": record.seconds,
        "cells": len(record.cells),
        "without_row": record.without_row,
        "news": news,
        "differences": [
            asdict(cell) | {"why": state_of(cell), "reference": row.reference if row else ""}
            for cell in record.to_settle
            for row in [explanation(cell)]
        ],
    }
