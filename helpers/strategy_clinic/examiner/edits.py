"""Edits to a file of the program, and the repair of a finding that they make."""

from __future__ import annotations

import difflib
import functools
from dataclasses import dataclass

Position = tuple[int, int]  # a line, and a column in characters, both counted from 1


@dataclass(frozen=True)
class Edit:
    """A part of a file, and the text that takes its place. Nothing else of the file changes."""

    start: Position
    end: Position
    text: str


@dataclass(frozen=True)
class Repair:
    """Edits to a file that remove a finding; whether they do is for runs to show."""

    mode: str
    file: str
    line: int  # of the finding
    before: str  # the text of the file
    edits: tuple[Edit, ...]

    @functools.cached_property
    def after(self) -> str:
        text = self.before
        for edit in sorted(self.edits, key=lambda edit: edit.start, reverse=True):
            text = text[: offset(text, edit.start)] + edit.text + text[offset(text, edit.end) :]
        return text

    def diff(self, name: str) -> str:
        """Returns a unified diff, with a name for the file."""
        before, after = map(whole_lines, (self.before, self.after))
        return "".join(difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", n=1))


def whole_lines(text: str) -> list[str]:
    """Returns lines as Python counts them, each with its end; one that the last line lacks is added."""
    return [f"{line}\n" for line in text.removesuffix("\n").split("\n")]


def offset(text: str, position: Position) -> int:
    lines = text.split("\n")[: position[0] - 1]
    return sum(len(line) + 1 for line in lines) + position[1] - 1
