"""The messages that stand on the pages of the modes, and the wordings that lead to a page on which they do not stand."""

import functools
import json
import re
from collections.abc import Iterator
from typing import Any

from ..base import files
from ..modes.failure_mode import FailureMode
from . import classify, phrases, wordings
from .report_text import Flat, flat
from .wordings import Wording

# What a first cell shows: blocks of messages, or a table that has them in its first column.
BLOCK = re.compile(r"```text\n(.*?)```", re.DOTALL)
FIRST_COLUMN = re.compile(r"^\| `+ ?(.+?) ?`+ +\|", re.MULTILINE)
CONDITION = re.compile(r"\s{3,}.*")  # to the right of a message
NAME_OF_ERROR = re.compile(r"^(?:WARNING:tensorflow:|[A-Za-z.]*(?:Error|Warning|Exception): )")
# The versions of which a page is: TensorFlow 2.18 to 2.21, and Keras 2 and 3.
OF_TODAY = re.compile(r"2\.(?:1[89]|2\d)|Keras 3.*|MODE")


def first_messages(mode: FailureMode) -> list[str]:
    """Returns the messages of the first cell of a page, and the title's: each is an error's, or known to triage."""
    text = first_cell(mode)
    title, _, rest = text.partition("\n")
    lines = [line for block in BLOCK.findall(rest) for line in block.splitlines()]
    lines += [*re.findall("`(.+?)`", title), *FIRST_COLUMN.findall(rest)]
    said = [CONDITION.sub("", line.strip()) for line in lines]
    return list(dict.fromkeys(line for line in said if NAME_OF_ERROR.match(line) or modes_of(line)))


def first_cell(mode: FailureMode) -> str:
    return next(text_of(cell["source"]) for cell in cells_of(mode))


def cells_of(mode: FailureMode) -> list[dict[str, Any]]:
    notebook = json.loads((files.notebooks().parent / mode.notebook).read_text())
    return list(notebook["cells"])


def text_of(written: str | list[str]) -> str:
    """Returns a text of a notebook's file, which may be cut into lines."""
    return "".join(written)


def modes_of(message: str) -> list[str]:
    """Returns every mode that has a wording of a message."""
    text = flat(message)
    modes = wordings.declared_modes()
    return [mode for mode in modes if any(classify.matched(each, text) for each in of(mode))]


@functools.cache
def of(mode: str) -> tuple[Wording, ...]:
    return tuple(entry for entry in wordings.wordings() if entry.mode == mode and is_message(entry))


def is_message(entry: Wording) -> bool:
    """Returns whether a wording is what a library says, and answers by itself."""
    is_own = entry.origin in ("words", "seen", "other")
    return classify.proves(entry) and not is_own and not entry.symptom.startswith("it prints")


def shared() -> dict[str, list[str]]:
    """Returns each message of a first cell, without the name of the error, and all modes that it may be of."""
    found: dict[str, set[str]] = {}
    for mode in wordings.declared_modes().values():
        for message in first_messages(mode):
            words = NAME_OF_ERROR.sub("", message).strip(" .…")
            found.setdefault(words, set()).update({mode.id, *modes_of(message)})
    return {message: sorted(modes) for message, modes in found.items()}


def page_text(mode: FailureMode) -> Flat:
    """Returns all that a page says and shows, in one line."""
    return flat("\n".join(texts_of(mode)))


def texts_of(mode: FailureMode) -> Iterator[str]:
    for cell in cells_of(mode):
        yield text_of(cell["source"])
        for output in cell.get("outputs", ()):
            yield text_of(output.get("text", ""))
            yield text_of(output.get("data", {}).get("text/plain", ""))


def missing(mode: FailureMode) -> list[str]:
    """Returns the first phrases of the wordings of today that lead to a page and do not stand on it."""
    lines = [line for text in texts_of(mode) for line in flat_lines(text)]
    text = page_text(mode)
    absent = (entry for entry in of_today(mode.id) if not stands(entry, text, lines))
    return list(dict.fromkeys(entry.says[0] for entry in absent))


@functools.cache
def flat_lines(text: str) -> list[Flat]:
    return [flat(line) for line in text.splitlines()]


def of_today(mode: str) -> list[Wording]:
    return [entry for entry in of(mode) if OF_TODAY.fullmatch(entry.origin)]


def stands(entry: Wording, text: Flat, lines: list[Flat]) -> bool:
    """Returns whether the message of a wording stands in a text, or the beginning of it at the end of a line."""
    if classify.first_match(entry, text):
        return True
    return not entry.symptom and any(phrases.matched_at_end(entry.says[0], line) for line in lines)
