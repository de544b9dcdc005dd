"""The answer as a card: the program line by line, with each finding below the line to blame. Text and HTML, no TensorFlow."""

import functools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from ...base.outcomes import LOOKS
from ...base.templates import from_template
from ...inside.html import card, page
from ...inside.tables import Tables
from ...inside.text import in_short
from ..cells import Line, Listing
from ..findings import Evidence, Examination, Finding, Location, counted
from . import text
from .explanation import explanation_of

AROUND = 4  # lines that are shown before and after one that is marked; the others are folded away
SHORTEST_FOLD = 12


@dataclass(frozen=True)
class Row:
    """A line of the program with its findings."""

    line: Line
    findings: tuple[Finding, ...]
    failed: bool

    @property
    def marked(self) -> bool:
        return bool(self.findings) or self.failed


@dataclass(frozen=True)
class Piece:
    """Rows that are shown together, or folded away."""

    rows: tuple[Row, ...]
    heading: str  # of a new cell
    shown: bool

    @property
    def folded(self) -> str:
        """What is shown of rows that are folded away."""
        numbers = self.rows[0].line.number, self.rows[-1].line.number
        return "" if self.shown else "lines {} to {}".format(*numbers)


def as_display(
    examination: Examination, listing: Listing, links: str | None = "", counts: bool = False
) -> dict[str, str]:
    """Returns what a front end shows: the card, or the words of it where there is no HTML."""
    card = card_of_program(examination, listing, links, counts)
    return {"text/plain": text.in_words(examination, counts), "text/html": card}


def card_of_program(
    examination: Examination, listing: Listing, links: str | None, counts: bool = False
) -> str:
    """Returns the card, with the counts of speed and memory if they are asked for.

    Its links lead to notebooks beside the page that shows it, or to where they are published. Without links, it names the
    notebooks.
    """
    rows = list(marked_rows(examination, listing))
    placed = [finding for row in rows for finding in row.findings]
    return from_template(
        "examiner/report/templates/card.html",
        look=LOOKS[look_of(examination)],
        headline=headline_of(examination),
        pieces=pieces_of(rows),
        elsewhere=[finding for finding in examination.findings if finding not in placed],
        examination=examination,
        counts=text.shown_counts(examination) if counts else [],
        text=text,
        explanation_of=explanation_of,
        links=links,
    )


def tables_as_display(tables: Tables) -> dict[str, str]:
    """Returns what a front end shows below the card: what each replica held."""
    return {"text/plain": in_short(tables), "text/html": card(tables)}


def page_of(examination: Examination, tables: Tables) -> str:
    """Returns a page with what was found, and below it what each replica held."""
    return page(
        tables,
        "examiner/report/templates/page.html",
        examination=examination,
        headline=headline_of(examination),
        report=text,
        explanation_of=explanation_of,
        anchor_of=functools.partial(anchor_of, tables),
    )


def anchor_of(tables: Tables, location: Location) -> str:
    """Returns the link to a line of the program on its page; nothing for a line that is not there."""
    if tables.places:
        lines = enumerate(tables.places, 1)
        number = next((each for each, name in lines if name == str(location)), 0)
    else:
        number = location.line if location.file == tables.path else 0
    return f"#line-{number}" if number else ""


def look_of(examination: Examination) -> str:
    if examination.findings:
        raised = any(finding.evidence is Evidence.RAISED for finding in examination.findings)
        return "raises" if raised else "wrong"
    if examination.failure:
        return "crashes"
    return "unavailable" if examination.stopped or examination.unseen else "works"


def headline_of(examination: Examination) -> str:
    program, count = examination.program, len(examination.findings)
    if count:
        return f"{program}: {counted(count, 'finding')}"
    if examination.failure:
        return f"{program} failed, in a way that is none of the modes"
    if examination.stopped:
        return f"{program}: stopped before all runs were made"
    return f"{program}: {text.nothing_found(examination)}"


def marked_rows(examination: Examination, listing: Listing) -> Iterator[Row]:
    """Yields the lines that a reader has, without empty ones at the end."""
    findings: defaultdict[tuple[str, int, int], list[Finding]] = defaultdict(list)
    for finding in examination.findings:
        location = finding.location
        findings[location.file, location.cell, location.line].append(finding)
    failed_at = examination.failed_at
    failed = failed_at.file, failed_at.cell, failed_at.line
    lines = [line for line in listing.lines if line.number]
    while lines and not lines[-1].code.strip():
        lines.pop()
    for line in lines:
        key = listing.file, line.cell, line.number
        yield Row(line, tuple(findings.get(key, ())), key == failed)


def pieces_of(rows: Sequence[Row]) -> list[Piece]:
    """Cuts the rows where a cell begins, behind each marked line, and where lines are folded away."""
    shown, starts = in_view(rows), [0] if rows else []
    for i in range(1, len(rows)):
        new_cell = rows[i].line.cell != rows[i - 1].line.cell
        if new_cell or rows[i - 1].marked or shown[i] != shown[i - 1]:
            starts.append(i)
    return [
        Piece(tuple(rows[start:end]), heading(rows, start), shown[start])
        for start, end in zip(starts, [*starts[1:], len(rows)])
    ]


def heading(rows: Sequence[Row], i: int) -> str:
    cell = rows[i].line.cell
    return f"cell {cell}" if cell and (i == 0 or rows[i - 1].line.cell != cell) else ""


def in_view(rows: Sequence[Row]) -> list[bool]:
    """Returns for each row whether it is shown: those around a marked one are, and stretches too short to be folded."""
    marked = [i for i, row in enumerate(rows) if row.marked]
    near = [any(abs(i - mark) <= AROUND for mark in marked) or not marked for i in range(len(rows))]
    view: list[bool] = []
    for shown, stretch in groupby(near):
        length = len(list(stretch))
        view += [shown or length <= SHORTEST_FOLD] * length
    return view
