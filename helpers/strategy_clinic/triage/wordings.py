"""What is known: the symptoms of all modes, and other wordings of them."""

import functools
import json
import tomllib
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ..base import files
from ..base.errors import UserError
from ..modes import registry


@dataclass(frozen=True)
class Wording:
    """An entry: one way in which a mode shows."""

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


# What is known


def wordings_folder() -> Path:
    return files.package() / "triage" / "wordings"


@functools.cache
def declared_modes() -> dict:
    return {mode.id: asdict(mode) for mode in registry.modes()}


@functools.cache
def described() -> dict:
    """How people describe each mode that is declared, and what is none: by mode, `tells` and `asks`."""
    written = read_toml("described.toml")
    return {
        mode: facts for mode, facts in written.items() if mode in declared_modes() or mode == "none"
    }


@functools.cache
def learned() -> dict[str, dict[str, float]]:
    """What reports have taught: how much each trait of a text speaks for a mode, or for none, or against it."""
    return json.loads((files.package() / "triage" / "learned.json").read_text())


def what_to_ask(mode: str) -> str:
    """What to ask a reader whose error may be this mode."""
    asks = (
        described().get(mode, {}).get("asks")
        or f"is this what you see: {declared_modes()[mode]['sees']}?"
    )
    return asks[0].upper() + asks[1:]


@functools.cache
def read_vocabulary() -> dict:
    return read_toml("vocabulary.toml")


def read_toml(name: str) -> dict:
    try:
        return tomllib.loads((files.package() / "triage" / name).read_text())
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{name} is no TOML: {error}.") from None


@functools.cache
def wordings() -> tuple[Wording, ...]:
    """Those of all files, and the symptoms of all modes."""
    written = [
        each for path in sorted(wordings_folder().glob("*.toml")) for each in read_wordings(path)
    ]
    written = [replace(each, fixed=fixed_in(each.mode, each.symptom)) for each in written]
    narrowed = {(each.mode, each.symptom) for each in written if each.symptom}
    declared = [
        Wording(
            mode,
            (symptom["says"],),
            "MODE",
            symptom=symptom["says"],
            fixed=fixed_in(mode, symptom["says"]),
        )
        for mode, facts in declared_modes().items()
        for symptom in facts["symptoms"]
        if (mode, symptom["says"]) not in narrowed
    ]
    return tuple(written + declared)


def fixed_in(mode: str | None, says: str) -> str:
    """The release in which a symptom is gone, and not only in other words."""
    declared = declared_modes().get(mode, {}).get("symptoms", ())
    ends = {each["until"] for each in declared if each["says"] == says}
    begins = {each["since"] for each in declared}
    return min(ends) if ends and "" not in ends and not ends & begins else ""


def read_wordings(path: Path) -> list[Wording]:
    mode = None if path.stem == "none" else path.stem
    try:
        entries = tomllib.loads(path.read_text())["wording"]
        return [wording(mode, dict(entry)) for entry in entries]
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{path.name} is no list of wordings: {error}.") from None


def wording(mode: str | None, entry: dict) -> Wording:
    says = as_tuple(entry.pop("says", ()))
    if "symptom" in entry:
        says = (entry["symptom"], *says)
    rest = {name: as_tuple(entry.pop(name, ())) for name in ("unless", "seen")}
    return Wording(mode, says, entry.pop("from"), **rest, **entry)


def as_tuple(value) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
