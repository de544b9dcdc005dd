"""The answer as a card: the program line by line, with each finding below the line to blame. Text and HTML, no TensorFlow."""

from dataclasses import dataclass
from itertools import groupby

from ...base.outcomes import LOOKS
from ...base.templates import from_template
from ...triage import answer_text
from ..cells import Line, Listing
from ..recording import Examination, Finding
from . import serialize

AROUND = 4  # lines that are shown before and after one that is marked; the others are folded away
SHORTEST_FOLD = 12


@dataclass(frozen=True)
class Row:
    """A line of the program with what is said of it."""

    line: Line
    findings: tuple[Finding, ...]
    failed: bool

    @property
    def marked(self) -> bool:
        return bool(self.findings) or self.failed


@dataclass(frozen=True)
class Piece:
    """Lines that are shown together: a heading for a new cell, or what is folded away."""

    rows: tuple[Row, ...]
    heading: str = ""
    folded: str = ""


def card_of_program(found: Examination, listing: Listing, stuck: Line | None, links: str) -> str:
    """Links lead to notebooks beside the page that shows the card, or to where they are published."""
    rows = marked_rows(found, listing, stuck)
    placed = [each for row in rows for each in row.findings]
    return from_template(
        "examiner/report/templates/card.html",
        look=LOOKS[look_of(found)],
        headline=headline_of(found),
        pieces=pieces_of(rows),
        elsewhere=[each for each in found.findings if each not in placed],
        found=found,
        told=serialize.finding_as_dict,
        place=serialize.place_of,
        notebook=answer_text.notebook_name,
        links=links,
        name=answer_text.full_name,
    )


def look_of(found: Examination) -> str:
    if found.findings:
        loud = any(each.proof.startswith("raised") for each in found.findings)
        return "raises" if loud else "silent"
    return "crashes" if found.failure else "unavailable" if found.stopped else "works"


def headline_of(found: Examination) -> str:
    many = len(found.findings)
    if many:
        return f"{found.program}: {many} finding{'s' if many > 1 else ''}"
    if found.failure:
        return f"{found.program} failed, in a way that is none of the modes"
    if found.stopped:
        return f"{found.program}: stopped before all runs were made"
    return f"{found.program}: nothing found in {serialize.ran(found)}"


def marked_rows(found: Examination, listing: Listing, stuck: Line | None) -> list[Row]:
    """Lines that no cell has, and empty ones at the end, are nobody's."""
    places = {}
    for each in found.findings:
        if each.file == listing.file:
            places.setdefault((each.cell, each.line), []).append(each)
    lines = [each for each in listing.lines if each.number]
    while lines and not lines[-1].code.strip():
        lines.pop()
    return [
        Row(each, tuple(places.get((each.cell, each.number), ())), each == stuck) for each in lines
    ]


def pieces_of(rows: list[Row]) -> list[Piece]:
    """Cut where a cell begins, behind each marked line, and where lines are folded away."""
    shown = in_view(rows)
    pieces, cell = [], 0
    for i, row in enumerate(rows):
        first = not pieces or row.line.cell != cell
        new = first or rows[i - 1].marked or shown[i] != shown[i - 1]
        cell = row.line.cell
        if new:
            heading = f"cell {cell}" if cell and first else ""
            pieces.append(Piece((), heading, "" if shown[i] else "folded"))
        last = pieces[-1]
        pieces[-1] = Piece((*last.rows, row), last.heading, last.folded and folded_words(last, row))
    return pieces


def folded_words(piece: Piece, last: Row) -> str:
    first = piece.rows[0] if piece.rows else last
    return f"lines {first.line.number} to {last.line.number}"


def in_view(rows: list[Row]) -> list[bool]:
    """Which lines are shown: those around a marked one, and runs that are too short to be folded."""
    marked = [i for i, row in enumerate(rows) if row.marked]
    near = [any(abs(i - each) <= AROUND for each in marked) or not marked for i in range(len(rows))]
    return [each for shown, run in groupby(near) for each in shown_run(shown, len(list(run)))]


def shown_run(shown: bool, length: int) -> list[bool]:
    return [shown or length <= SHORTEST_FOLD] * length


def as_display(found: Examination, listing: Listing, stuck: Line | None, links: str = "") -> dict:
    """What a front end shows: the card, or the words of it where there is no HTML."""
    html = card_of_program(found, listing, stuck, links)
    return {"text/plain": serialize.in_words(found), "text/html": html}
