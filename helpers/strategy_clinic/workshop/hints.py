"""Hints: for an exercise that is not solved yet, one line for each usual mistake, known by what the mistake prints or raises.

Each mode has its hints in `hints.toml`. The first one is for the exercise as it was handed out, which a participant can ask for.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base import files

NAME = "hints.toml"


@dataclass(frozen=True)
class Hint:
    """A pattern of what a program prints or raises, and a line to think about."""

    shows: str
    says: str


def path_of(mode: str) -> Path:
    return files.mode_folder(mode) / NAME


def hints_of(mode: str) -> list[Hint]:
    """Returns the hints of a mode, none if it has none."""
    path = path_of(mode)
    stored: list[dict[str, Any]] = files.toml(path.read_text())["hint"] if path.is_file() else []
    return [Hint(**each) for each in stored]


def hint_for(mode: str, shown: str) -> str:
    """Returns the hint whose mistake shows this, or "" if none does."""
    found = (hint.says for hint in hints_of(mode) if re.search(hint.shows, shown, re.S))
    return next(found, "")


def first_hint(mode: str) -> str:
    return next((hint.says for hint in hints_of(mode)), "")
