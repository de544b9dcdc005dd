"""Edits to a file of the program, and the repair of a finding that they make."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

Position = tuple[int, int]  # a line, and a column in characters, both counted from 1


@dataclass(frozen=True)
class Edit:
    """A part of a file, and the text that takes its place. Nothing else of the file changes."""

    start: Position
    end: Position
    text: str


def inserted(place: Position, text: str) -> Edit:
    return Edit(place, place, text)


@dataclass(frozen=True)
class Repair:
    """Edits to a file that remove a finding; whether they do is for runs to show."""

    mode: str
    file: str  # of the finding, as the line is
    line: int
    before: str  # the text of the file, or of the cell
    edits: tuple[Edit, ...]
    cell: int = 0  # of a notebook, in which lines are counted
    edited: str = ""  # another file, from which the line of the finding is called
    edited_cell: int = 0  # the cell that the edits change
    newline: str = "\n"  # by which the file ends its lines; the texts here have "\n"

    @property
    def path(self) -> str:
        return self.edited or self.file

    @functools.cached_property
    def after(self) -> str:
        text = self.before
        for edit in sorted(self.edits, key=lambda edit: edit.start, reverse=True):
            text = text[: offset(text, edit.start)] + edit.text + text[offset(text, edit.end) :]
        return text

    def diff(self, name: str) -> str:
        """Returns a unified diff, with a name for the file."""
        before, after = map(whole_lines, (self.before, self.after))
        lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", n=1)
        return "".join(
            each if i < 2 or each.startswith("@") else self.as_in_file(each)
            for i, each in enumerate(lines)
        )

    def as_in_file(self, text: str) -> str:
        return text.replace("\n", self.newline)


def whole_lines(text: str) -> list[str]:
    """Returns lines as Python counts them, each with its end; one that the last line lacks is added."""
    return [f"{line}\n" for line in text.removesuffix("\n").split("\n")]


def inside(repair: Repair, cell: int, lines: range, shown: Sequence[str]) -> Repair | None:
    """Returns the repair of a program as one of the cell that has these lines of it; None if it changes others, too.

    `shown` are the lines of the cell. Some are others in the program, such as magics: a repair cannot change these.
    """
    up = lines.start - 1
    run = repair.before.split("\n")[up : lines.stop - 1]
    text = "\n".join(shown) + "\n"
    if not all(
        each.start[0] in lines and each.end[0] in {*lines, lines.stop} for each in repair.edits
    ):
        return None
    changed = {line - lines.start for each in repair.edits for line in lines_in(each)}
    if any(run[line : line + 1] != [*shown[line : line + 1]] for line in changed):
        return None
    edits = [Edit(moved(each.start, -up), moved(each.end, -up), each.text) for each in repair.edits]
    return replace(repair, before=text, edits=tuple(edits), edited_cell=cell)


def lines_in(edit: Edit) -> range:
    """Returns the lines of which an edit changes a part; none for one that inserts whole lines."""
    return range(edit.start[0], edit.end[0] + (edit.end[1] > 1))


def newline_of(path: Path) -> str:
    """Returns how a file ends its first line."""
    with path.open("rb") as file:
        return "\r\n" if file.readline().endswith(b"\r\n") else "\n"


def moved(position: Position, lines: int) -> Position:
    return position[0] + lines, position[1]


def offset(text: str, position: Position) -> int:
    lines = text.split("\n")[: position[0] - 1]
    return sum(len(line) + 1 for line in lines) + position[1] - 1
