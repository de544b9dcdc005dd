"""The atlas over versions: modes by version records. Neighbouring versions with the same verdicts are one cell."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.outcomes import LOOKS
from ..base.templates import from_template
from ..modes import registry
from ..modes.failure_mode import FailureMode
from ..programs.version_bounds import bounds_in_words
from ..setups import runtime
from .version_records import VersionRecord, VersionVerdict, version_records

COMPARED = ("broken", "fixed", "evidence", "page")


@dataclass
class Period:
    """Neighbouring versions with the same verdicts of a mode, or with none."""

    records: list[VersionRecord]
    verdict: VersionVerdict | None

    @property
    def name(self) -> str:
        names = [self.records[0].name, self.records[-1].name]
        return " to ".join(dict.fromkeys(names))


@dataclass
class VersionsRow:
    """One mode on one version of Keras, from the oldest version to the newest."""

    mode: FailureMode
    keras: int
    periods: list[Period]

    @property
    def title(self) -> str:
        return f"{self.mode.id} {self.mode.slug}, Keras {self.keras}"

    @property
    def recorded(self) -> list[tuple[Period, VersionVerdict]]:
        return [(period, period.verdict) for period in self.periods if period.verdict]

    @property
    def changed(self) -> bool:
        """Tells whether two verdicts differ; a version without a record between two equal ones changes nothing."""
        return any(verdict != self.recorded[0][1] for _, verdict in self.recorded)


def versions_rows(records: list[VersionRecord]) -> list[VersionsRow]:
    return [
        VersionsRow(mode, keras, periods(records, mode.id, keras))
        for mode in registry.modes()
        for keras in reversed(runtime.KERAS_VERSIONS)
    ]


def periods(records: list[VersionRecord], mode: str, keras: int) -> list[Period]:
    found: list[Period] = []
    for record in records:
        verdict = record.verdicts.get((mode, keras))
        if found and found[-1].verdict == verdict:
            found[-1].records.append(record)
        else:
            found.append(Period([record], verdict))
    return found


# In words


def versions_sentences(rows: list[VersionsRow]) -> list[str]:
    """Returns a line for each row that a version has changed, and one that names the others."""
    lines = [
        f"{row.title}: {'; '.join(in_words(*recorded) for recorded in row.recorded)}"
        for row in rows
        if row.changed
    ]
    same = [f"{row.mode.id} ({row.keras})" for row in rows if row.recorded and not row.changed]
    return [*lines, f"the same wherever recorded, mode (Keras): {', '.join(same)}"]


def in_words(period: Period, verdict: VersionVerdict) -> str:
    words = f"on {period.name} the broken code {verb(verdict.broken)}"
    if verdict.fixed != "works":
        words += f", the fixed one {verb(verdict.fixed)}"
    if verdict.page != "as stored":
        words += ", its page is otherwise than stored"
    return f"{words} ({verdict.says or 'no message'})"


def verb(outcome: str) -> str:
    return "is wrong" if outcome == "wrong" else outcome


def changes(before: VersionVerdict, now: VersionVerdict) -> list[str]:
    """Returns in words how the verdicts of two periods differ."""
    pairs = {name: (getattr(before, name), getattr(now, name)) for name in COMPARED}
    words = [
        f"{name}: {was}, then {is_now}" for name, (was, is_now) in pairs.items() if was != is_now
    ]
    if before.says != now.says:
        words.append(f"message: {before.says or 'none'}, then: {now.says or 'none'}")
    return words


# As a table


def versions_html(where: str) -> str:
    """Returns two tables: the modes that a version has changed, and the others; each cell opens to its verdicts."""
    records = version_records()
    rows = versions_rows(records)
    return from_template(
        "records/templates/versions_table.html",
        records=[(record.name, all_versions(record)) for record in records],
        changed=[row_values(row, where) for row in rows if row.changed],
        same=[row_values(row, where) for row in rows if row.recorded and not row.changed],
        sentences=versions_sentences(rows),
    )


def all_versions(record: VersionRecord) -> str:
    return ", ".join(f"{name} {version}" for name, version in record.versions.items())


def row_values(row: VersionsRow, where: str) -> dict[str, Any]:
    cells, before = [], None
    for period in row.periods:
        cells.append(cell_values(row, period, before))
        before = period if period.verdict else before
    return {
        "title": row.title,
        "link": where + Path(row.mode.notebook).name,
        "cells": cells,
        "declared": declared_bounds(row),
    }


def cell_values(row: VersionsRow, period: Period, before: Period | None) -> dict[str, Any]:
    verdict = period.verdict
    outcome = verdict.broken if verdict else ""
    return {
        "span": len(period.records),
        "name": period.name,
        "versions": [all_versions(record) for record in period.records],
        "verdict": verdict,
        "look": LOOKS.get(outcome, LOOKS[""]),
        "word": outcome or "not recorded",
        "changes": changes(before.verdict, verdict)
        if before and before.verdict and verdict
        else [],
        "between": [before.records[-1].name, period.records[0].name] if before else [],
        "of": row.title,
    }


def declared_bounds(row: VersionsRow) -> str:
    """Returns the releases that the mode's symptoms name for this version of Keras."""
    symptoms = [each for each in row.mode.symptoms if row.keras in (each.keras or (row.keras,))]
    bounds = [
        f"{each.raises} {bounds_in_words(each)}" for each in symptoms if bounds_in_words(each)
    ]
    return "; ".join(dict.fromkeys(bounds))


class VersionsTable:
    """Shows the tables in a notebook, and sentences where no HTML is shown."""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        sentences = versions_sentences(versions_rows(version_records()))
        return {"text/plain": "\n".join(sentences), "text/html": versions_html("")}
