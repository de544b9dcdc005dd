"""What rendering adds to the page of a mode: its fix and the other messages that lead to it, and at the end how to go on."""

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..base.templates import from_template
from ..modes.failure_mode import FailureMode
from ..triage import page_messages, phrases
from ..triage.wordings import Wording

FIX = "**Fix:** "
ADDED = re.compile(r"\n\n\*\*Fix:\*\* [^\n]+|\n\n<details>.*\Z", re.DOTALL)
ONWARD = (
    "Another message? [Paste it](00_start_here.ipynb), or run `clinic triage error.txt`. "
    "No message? [Examine your program](examine_your_code.ipynb)."
)
MOST_FORMS = 4  # of a phrase with words of which any is meant
# What the first folder of a file of TensorFlow or Keras is called here.
LIBRARIES = {"tf_keras": "Keras 2", "keras": "Keras 3", "tensorflow": "TensorFlow 2.21"}


@dataclass(frozen=True)
class OtherMessage:
    """A row of the folded table: the forms of a message, what else the text has, what raises it, its origin, its own fix."""

    forms: tuple[str, ...]
    beside: tuple[tuple[str, ...], ...]
    by: str
    origin: str
    fix: str


def with_answer(first: str, mode: FailureMode) -> str:
    """Returns a first cell with the fix before its last paragraph, and the other messages below it."""
    before, gap, last = first.rpartition("\n\n")
    return f"{before}\n\n{FIX}{mode.fix}.{gap}{last}{other_messages(first, mode)}"


def as_written(first: str) -> str:
    """Returns a first cell as a person has written it."""
    return ADDED.sub("", first)


def other_messages(first: str, mode: FailureMode) -> str:
    """Returns a folded table of the messages that lead to a mode and are not in its first cell, or ""."""
    rows = rows_of(page_messages.absent(first, page_messages.of(mode.id)))
    if not rows:
        return ""
    columns = {name: any(getattr(row, name) for row in rows) for name in ("by", "fix")}
    html = from_template("rendering/other_messages.html", rows=rows, columns=columns)
    return f"\n\n{html.strip()}"


def rows_of(entries: Iterable[Wording]) -> list[OtherMessage]:
    """Returns a row for each message, those first that mean a mode whatever else is in the text."""
    rows: dict[tuple[str, ...], OtherMessage] = {}
    for row in sorted(map(row_of, entries), key=lambda row: len(row.beside)):
        rows.setdefault(row.forms, row)
    return list(rows.values())


def row_of(entry: Wording) -> OtherMessage:
    says = (readable(entry.symptom),) if entry.symptom else forms(entry.says[0])
    beside = tuple(map(forms, entry.says[1:]))
    return OtherMessage(says, beside, entry.by, origin_of(entry), entry.fix)


def readable(symptom: str) -> str:
    """Returns an expression as the message that it is meant for: the first of several, and dots for what differs."""
    plain = re.sub(r"\(([^()|]+)\|[^()]*\)|\((<[^()]+)\)\?", r"\1", symptom).split("|")[0]
    dots = re.sub(r"(?<!\\)\.[*+]\??|\\[a-zA-Z][*+]?|\\ ?\?| \?", "…", plain)
    return re.sub(r"\\(.)", r"\1", re.sub("…+", "…", dots)).strip()


def forms(phrase: str) -> tuple[str, ...]:
    """Returns a phrase in each of its forms, or in the first ones."""
    parts = phrases.CHOICE.split(phrase)
    choices = [part.split("|") if number % 2 else [part] for number, part in enumerate(parts)]
    texts = map("".join, itertools.islice(itertools.product(*choices), MOST_FORMS))
    return tuple(text.replace("...", "…").strip() for text in texts)


def origin_of(entry: Wording) -> str:
    """Returns the library and the version that a wording is from, and the file where it is known."""
    if entry.origin == "MODE":
        return ""
    library = LIBRARIES.get(entry.file.split("/")[0], "") if entry.origin == "2.21" else ""
    named = entry.origin if entry.origin[0].isalpha() else f"TensorFlow {entry.origin}"
    return ", ".join(filter(None, [library or named, entry.file]))
