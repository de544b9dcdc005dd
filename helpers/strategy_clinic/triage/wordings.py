"""The words by which triage knows the modes: `words.toml` in the folder of each mode, and `not_a_mode.toml` beside this module.

`words.toml` holds a `question` that tells the mode from others, `descriptions` (what people say who quote no message, in our own
words: what was done, in which context, and what was seen instead), and any number of the following two tables.

A [[wording]] is one way in which the mode shows in a pasted text. A phrase is matched without case, quotes and line breaks, and
as whole words; `...` stands for anything in between, `{a|b}` for one of several. An entry has

    says     one phrase or several, all of which must be in the text; the first is the error's own
    from     since when or in which version: "2.21" is checked against `file`; "words" are a reader's own, "MODE" is ours,
             "seen" comes from nothing but the reports of the repositories in `seen`, "other" is another program's
    unless   phrases that speak against it
    proof    how much it proves: certain, sure (the default), likely, hint
    alone    true for a warning, a frame or a reader's own words: it counts only where nothing is raised
    frame    true for what a traceback names: it counts only where no message is known, as when the message is cut off
    symptom  instead of the first phrase, a symptom of the mode's declaration that proves something only together with the rest
    fix      what to do, where the fix of the mode does not help with this message
    by       what raises it, for the folded table of messages of the page
    kind     only in not_a_mode.toml: what it is instead; `advice` there says what to do about some kinds

A [[code]] is a pattern in a report's code that speaks for the mode where nothing is raised. It is rare outside the mode: what
half of all programs have, such as a batch normalisation under a strategy, proves nothing. An entry has

    has      an expression for what the code has
    words    plain words separated by `|`, of which the code must have one: what is cheap to check comes first
    within   an expression for the line whose block has it: the lines below that are indented further. `RUN` stands
             for the names of the functions that are passed to `strategy.run`; `@` takes the function that it decorates
    beside   what else the code must have
    unless   what speaks against it
"""

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..base import files
from ..base.errors import UserError
from ..modes import registry
from ..modes.failure_mode import FailureMode
from .known_errors import KnownError, known_errors
from .releases import PACKAGES, Releases


@dataclass(
    frozen=True, eq=False
)  # each is itself: to compare what it says takes long in a table of all
class Wording:
    mode: str | None
    says: tuple[str, ...]
    origin: str
    unless: tuple[str, ...] = ()
    proof: str = "sure"
    alone: bool = False
    frame: bool = False
    kind: str = ""
    symptom: str = ""
    file: str = ""
    seen: tuple[str, ...] = ()
    fixed: str = ""
    fix: str = ""
    by: str = ""
    error: str = ""  # the id of the known error that it is a wording of,
    releases: Releases | None = None  # and the releases that have this,
    named: bool = False  # one of which the text must name


@dataclass(frozen=True)
class CodePattern:
    has: str
    words: str
    within: str = ""
    beside: str = ""
    unless: str = ""


@dataclass(frozen=True)
class ModeWords:
    """The contents of one file; `mode` is None for what is not a mode."""

    mode: str | None
    descriptions: tuple[str, ...]
    wordings: tuple[Wording, ...]
    question: str = ""
    code: tuple[CodePattern, ...] = ()


@functools.cache
def declared_modes() -> dict[str, FailureMode]:
    """Returns what every mode declares, by its id."""
    return {mode.id: mode for mode in registry.modes()}


def words_files() -> dict[str | None, Path]:
    """Returns the file of each mode that has one, and under None that of what is not a mode."""
    paths = sorted((files.package() / "modes").glob("*/words.toml"))
    by_mode: dict[str | None, Path] = {path.parent.name.split("_")[0]: path for path in paths}
    return by_mode | {None: files.package() / "triage" / "not_a_mode.toml"}


@functools.cache
def mode_words() -> dict[str | None, ModeWords]:
    """Returns the words of every declared mode that has a file, and last of what is not a mode.

    Raises UserError if a file is not as the docstring of this module describes it.
    """
    known = {*declared_modes(), None}
    return {mode: read_words(mode, path) for mode, path in words_files().items() if mode in known}


def read_words(mode: str | None, path: Path) -> ModeWords:
    try:
        content = dict(files.toml(path.read_text()))
        advice = content.pop("advice", {})
        return ModeWords(
            mode,
            tuple(content.pop("descriptions", ())),
            tuple(wording(mode, advised(entry, advice)) for entry in content.pop("wording", ())),
            code=tuple(CodePattern(**entry) for entry in content.pop("code", ())),
            **content,
        )
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{path.parent.name}/{path.name} cannot be read: {error}.") from None


def advised(entry: Mapping[str, Any], advice: Mapping[str, str]) -> Mapping[str, Any]:
    """Returns an entry with what to do about its kind, if it says nothing itself."""
    known = advice.get(entry.get("kind", ""))
    return {"fix": known, **entry} if known else entry


def wording(mode: str | None, written: Mapping[str, Any]) -> Wording:
    entry = dict(written)
    says = as_tuple(entry.pop("says", ()))
    if "symptom" in entry:
        says = (entry["symptom"], *says)
    unless, seen = as_tuple(entry.pop("unless", ())), as_tuple(entry.pop("seen", ()))
    read = Wording(mode, says, entry.pop("from"), unless, seen=seen, **entry)
    return replace(read, fixed=fixed_in(mode, read.symptom))


def as_tuple(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


@functools.cache
def wordings() -> tuple[Wording, ...]:
    """Returns the wordings of all files, the declared symptoms that no wording narrows, and the wordings of known errors."""
    written = [entry for words in mode_words().values() for entry in words.wordings]
    narrowed = {(entry.mode, entry.symptom) for entry in written if entry.symptom}
    declared = [
        Wording(mode, (says,), "MODE", symptom=says, fixed=fixed_in(mode, says))
        for mode, declaration in declared_modes().items()
        for says in (symptom.says for symptom in declaration.symptoms)
        if (mode, says) not in narrowed
    ]
    of_errors = [entry for error in known_errors().values() for entry in wordings_of(error)]
    return tuple(written + declared + of_errors)


def wordings_of(error: KnownError) -> list[Wording]:
    releases = error.releases
    origin = f"{PACKAGES[releases.package]} {releases.first}"
    known = {"kind": error.kind, "fix": error.repair, "error": error.id, "releases": releases}
    return [wording(None, {"from": origin, **known, **entry}) for entry in error.wordings]


def fixed_in(mode: str | None, says: str) -> str:
    """Returns the release in which a symptom is gone, unless the mode has another symptom from then on."""
    symptoms = declared_modes()[mode].symptoms if mode in declared_modes() else ()
    ends = {symptom.until for symptom in symptoms if symptom.says == says}
    begins = {symptom.since for symptom in symptoms}
    return min(ends) if ends and "" not in ends and not ends & begins else ""


def question_of(mode: str) -> str:
    """Returns what to ask a reader whose error may be this mode."""
    words = mode_words().get(mode)
    question = words.question if words else ""
    question = question or f"is this what you see: {declared_modes()[mode].sees}?"
    return question[0].upper() + question[1:]


@functools.cache
def read_vocabulary() -> Mapping[str, Any]:
    return files.toml((files.package() / "triage" / "vocabulary.toml").read_text())
