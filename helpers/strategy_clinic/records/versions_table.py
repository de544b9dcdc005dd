"""The atlas over versions: modes by lanes. Neighbouring lanes on which nothing differs are one cell."""

from dataclasses import dataclass
from pathlib import Path

from ..base.outcomes import LOOKS
from ..base.templates import from_template
from ..experiments.version_bounds import bounds_in_words
from ..modes.registry import modes as all_declared
from ..setups import runtime
from . import version_records


@dataclass
class Period:
    """Lanes in a row that say the same of a mode; `found` is None where nobody has recorded it."""

    lanes: list
    found: dict | None

    @property
    def name(self) -> str:
        names = list(dict.fromkeys([self.lanes[0].name, self.lanes[-1].name]))
        return " to ".join(names)


@dataclass
class Times:
    """One mode on one Keras generation, from the oldest lane to the newest."""

    mode: object
    keras: int
    periods: list

    @property
    def told(self) -> list:
        return [each for each in self.periods if each.found]

    @property
    def changed(self) -> bool:
        return len(self.told) > 1


def times_rows() -> list[Times]:
    listed = version_records.lanes()
    return [
        Times(mode, keras, periods(listed, mode.id, keras))
        for mode in all_declared()
        for keras in reversed(runtime.GENERATIONS)
    ]


def periods(listed: list, mode: str, keras: int) -> list[Period]:
    made = []
    for lane in listed:
        found = lane.verdicts.get((mode, keras))
        if made and made[-1].found == found:
            made[-1].lanes.append(lane)
        else:
            made.append(Period([lane], found))
    return made


# In words


def times_sentences(rows: list[Times]) -> list[str]:
    """One line for each row that a version has changed, and one that names the others."""
    lines = [
        f"{title(row)}: {'; '.join(map(period_told, row.told))}" for row in rows if row.changed
    ]
    same = [f"{row.mode.id} ({row.keras})" for row in rows if row.told and not row.changed]
    return [*lines, f"the same wherever recorded, mode (Keras): {', '.join(same)}"]


def title(row: Times) -> str:
    return f"{row.mode.id} {row.mode.slug}, Keras {row.keras}"


def period_told(period: Period) -> str:
    found = period.found
    words = f"on {period.name} the broken code {verb(found['broken'])}"
    if found["fixed"] != "works":
        words += f", the fixed one {verb(found['fixed'])}"
    if found["page"] != "as stored":
        words += ", its page is otherwise than stored"
    return f"{words} ({found['says'] or 'no message'})"


def verb(outcome: str) -> str:
    return {"silent": "is silent"}.get(outcome, outcome)


def differences(before: dict, now: dict) -> list[str]:
    """What a change was, from the verdicts of two periods."""
    names = ("broken", "fixed", "evidence", "page")
    told = [f"{n}: {before[n]}, then {now[n]}" for n in names if before[n] != now[n]]
    if before["says"] != now["says"]:
        told.append(f"message: {before['says'] or 'none'}, then: {now['says'] or 'none'}")
    claims = sorted(before["claims"] | now["claims"])
    return told + [
        f"claim {name}: {before['claims'].get(name)}, then {now['claims'].get(name)}"
        for name in claims
        if before["claims"].get(name) != now["claims"].get(name)
    ]


def each_version(lane) -> str:
    return ", ".join(f"{name} {version}" for name, version in lane.versions.items())


# As a table


def times_html(where: str) -> str:
    """Two tables: the modes that a version has changed, and the others folded; each cell opens what is behind it."""
    rows, listed = times_rows(), version_records.lanes()
    return from_template(
        "records/templates/times.html",
        lanes=[(lane.name, each_version(lane)) for lane in listed],
        changed=[times_values(row, where) for row in rows if row.changed],
        same=[times_values(row, where) for row in rows if row.told and not row.changed],
        sentences=times_sentences(rows),
    )


def times_values(row: Times, where: str) -> dict:
    before = [None, *row.told]
    earlier = {id(now): was for was, now in zip(before, row.told)}
    return {
        "title": title(row),
        "link": where + Path(row.mode.notebook).name,
        "cells": [cell_of(row, each, earlier.get(id(each))) for each in row.periods],
        "declared": declared_bounds(row),
    }


def cell_of(row: Times, period: Period, before: Period | None) -> dict:
    found = period.found or {}
    word = found.get("broken", "")
    return {
        "span": len(period.lanes),
        "name": period.name,
        "versions": [each_version(lane) for lane in period.lanes],
        "found": period.found,
        "look": LOOKS.get(word, LOOKS[""]),
        "word": word or "not recorded",
        "changes": differences(before.found, found) if before else [],
        "between": [before.lanes[-1].name, period.lanes[0].name] if before else [],
        "of": title(row),
    }


def declared_bounds(row: Times) -> str:
    """The release that its declaration names, for this generation."""
    of_keras = [each for each in row.mode.symptoms if row.keras in (each.keras or (row.keras,))]
    told = [f"{each.raises} {bounds_in_words(each)}" for each in of_keras if bounds_in_words(each)]
    return "; ".join(dict.fromkeys(told))


class OverVersions:
    """What a notebook shows: the tables, and the same in words where no HTML is shown."""

    def _repr_mimebundle_(self, **_):
        return {"text/plain": "\n".join(times_sentences(times_rows())), "text/html": times_html("")}
