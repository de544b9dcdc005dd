"""The messages that stand on the pages of the modes, and the wordings that lead to a page on which they do not stand."""

import functools
import html
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ..base import files
from ..modes.failure_mode import FailureMode
from . import classify, phrases, wordings
from .report_text import Flat, flat
from .wordings import Wording

# What a first cell shows: a table that has messages in its first column.
FIRST_COLUMN = re.compile(r"^\| (?:no message: )?(`+) ?(.+?) ?\1 *\|", re.MULTILINE)
NAME_OF_ERROR = re.compile(r"^(?:WARNING:tensorflow:|[A-Za-z.]*(?:Error|Warning|Exception): )")
# The versions of which a page is: TensorFlow 2.18 to 2.21, and Keras 2 and 3.
OF_TODAY = re.compile(r"2\.(?:1[89]|2\d)|Keras 3.*|MODE")


def first_messages(mode: FailureMode) -> list[str]:
    """Returns the messages of the first cell of a page, and the title's: each is an error's, or known to triage."""
    title, _, rest = first_cell(mode).partition("\n")
    said = [*rows(rest), *re.findall("`(.+?)`", title)]
    return list(dict.fromkeys(line for line in said if NAME_OF_ERROR.match(line) or modes_of(line)))


def rows(text: str) -> list[str]:
    """Returns the messages in the first column of a table of Markdown."""
    return [message for _, message in FIRST_COLUMN.findall(text)]


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
        yield html.unescape(text_of(cell["source"]))
        for output in cell.get("outputs", ()):
            yield text_of(output.get("text", ""))
            yield text_of(output.get("data", {}).get("text/plain", ""))


def missing(mode: FailureMode) -> list[str]:
    """Returns the first phrases of the wordings of today that lead to a page and do not stand in its first cell."""
    first = html.unescape(re.sub(r"</?[a-z]+>", " ", first_cell(mode)))
    return list(dict.fromkeys(entry.says[0] for entry in absent(first, of_today(mode.id))))


def absent(first: str, entries: Iterable[Wording]) -> list[Wording]:
    """Returns the wordings whose message does not stand in the text of a first cell."""
    text, lines = flat(first), [flat(row.rstrip("… ")) for row in rows(first)]
    return [entry for entry in entries if not stands(entry, text, lines)]


def of_today(mode: str) -> list[Wording]:
    return [entry for entry in of(mode) if OF_TODAY.fullmatch(entry.origin)]


def stands(entry: Wording, text: Flat, lines: list[Flat]) -> bool:
    """Returns whether the message of a wording stands in a text, or its beginning at the end of a line; not what is beside it."""
    if classify.first_match(entry, text):
        return True
    return not entry.symptom and any(phrases.matched_at_end(entry.says[0], line) for line in lines)
