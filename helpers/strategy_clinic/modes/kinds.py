"""How a failure mode shows: kinds that follow from its symptoms and from the first cell of its page."""

import re

from ..base import files
from .failure_mode import FailureMode, Symptom
from .groups import groups

RAISES, WARNS, WRONG, HANGS, WASTES = KINDS = (
    "raises",
    "warns",
    "wrong numbers",
    "hangs",
    "wastes time or memory",
)
NO_MESSAGE = "no message: "
# A row of the table in a page's first cell: the message, and what raises it.
ROW = re.compile(r"^# \| (?!Message |-)(.+?) \| (.+) \| [\w., ]+ \|$", re.MULTILINE)
# The sentence in that cell that says where the mode fails, and the words in it that tell a kind.
STATUS = re.compile(r"^# \*([^*]+)\*$", re.MULTILINE)
WORDS = {
    RAISES: re.compile(r"\braises\b", re.IGNORECASE),
    WARNS: re.compile(r"\ba warning\b", re.IGNORECASE),
    WRONG: re.compile(
        r"\bwrong (?:result|number|data)\b|\banother result\b|\blost state\b", re.IGNORECASE
    ),
    HANGS: re.compile(r"\bhangs\b", re.IGNORECASE),
    WASTES: re.compile(r"\bslow\b|\bwasted\b|\btoo much memory\b", re.IGNORECASE),
}


def kinds_of(mode: FailureMode) -> tuple[str, ...]:
    """Returns the kinds of a mode, first those that its own program shows."""
    return tuple(dict.fromkeys([*shown_kinds(mode), *told_kinds(mode)]))


def shown_kinds(mode: FailureMode) -> list[str]:
    """Returns the kinds of the mode's symptoms, in their order."""
    return [kind_of_symptom(symptom, without_message(mode)) for symptom in mode.symptoms]


def told_kinds(mode: FailureMode) -> list[str]:
    """Returns the kinds that the first cell of the mode's page tells."""
    without = without_message(mode)
    cell = (files.mode_folder(mode.id) / "page.py").read_text().partition("\n\n# %%")[0]
    told = [kind_of_row(message, by, without) for message, by in ROW.findall(cell)]
    for status in STATUS.findall(cell):
        told += [kind for kind, words in WORDS.items() if words.search(status)]
    return [without if kind == WRONG else kind for kind in told]


def without_message(mode: FailureMode) -> str:
    """Returns what the modes of this one's group show where there is no message."""
    return next((group.without for group in groups() if mode.id in group.modes), WRONG)


def kind_of_symptom(symptom: Symptom, without: str) -> str:
    """Returns the kind of a symptom; `without` is that of one that raises nothing."""
    if symptom.outcome == "wrong":
        return without
    return HANGS if symptom.raises == "TimeoutError" else RAISES


def kind_of_row(message: str, by: str, without: str) -> str:
    if message.startswith(NO_MESSAGE):
        return without
    return WARNS if "warning" in f"{message} {by}".lower() else RAISES


def how_it_fails(mode: FailureMode) -> str:
    """Returns the kinds of a mode in words."""
    kinds = kinds_of(mode)
    words = " or ".join(kind for kind in kinds if kind != WARNS)
    return f"{words}, and warns" if WARNS in kinds else words
