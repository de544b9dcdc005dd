"""Triage: from a pasted error to the failure mode that it shows, or to none of them.

What is known lies beside the notebooks: the symptoms that each MODE declares, and other wordings of the same mode in
notebooks/wordings/fmNN.toml; none.toml holds what looks near and is none of the modes, by kind. A phrase there is matched
without case, quotes and line breaks; `...` stands for anything on the way, `{a|b}` for one of several. An entry says

    says     one phrase or several, all of which must stand in the text; the first is the error's own
    from     since when or in which version: "2.21" is checked against `file`; "words" are a reader's own, "MODE" is ours,
             "seen" comes from nothing but the reports of the repositories in `seen`, "other" is another program's
    unless   phrases that speak against it
    proof    how much it proves: certain, sure (if nothing is said), likely, hint
    alone    true for a warning, a frame or a reader's own words: it counts only where nothing is raised
    symptom  instead of the first phrase, a symptom of MODE that proves something only together with the rest
"""

import functools
import html
import itertools
import json
import re
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path

from .refusals import Refused

ROOT = Path(__file__).parents[1]
# How often a text with these words is that mode.
PROOF = {"certain": 0.99, "sure": 0.95, "likely": 0.75, "hint": 0.4}
UNKNOWN = 0.1  # odds that a text without any known words is a mode after all
LAST = 3  # an error counts so many times more if nothing was raised after it
CLAIMED = 0.5  # below this, for all modes together, the answer is none,
FIRST = 0.4  # and below this for the likeliest: of two that are as likely, one is named and the other told
CLOSE = 0.15  # a runner-up is told from here on
LONGEST = 200_000  # signs of a text that are read: its beginning and, with the last error, its end
GAP = 500  # signs that `...` stands for, at most
SHOWN = 100  # signs of what a text says that are told
STUB = 12  # signs with which a phrase must begin before the end of a text cuts it off,
MOST = (0.6, 0.8)  # and how much of it must be left: of one without a gap, of one with gaps
STARTS = 50  # places at which a phrase with a gap is tried
# Quotes and emphasis, which pasting changes or loses.
DROPPED = dict.fromkeys(map(ord, "'\"`´‘’“”*"))
# Colours, also as the text of a notebook file spells them, and what is left where only the escape got lost.
ESCAPE = r"(?:\x1b|\\u001b|\\x1b|\\033)"
ANSI = re.compile(
    ESCAPE + r"(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?)|\[[0-9;]{1,8}m"
)
# Marks of quotations, boxes and pytest at the beginning of lines.
MARGIN = re.compile(r"^[ \t>│┃|]*(?:E {2,})?", re.MULTILINE)
RAISED = re.compile(r"\b[A-Z]\w{1,60}(?:Error|Exception|Failure)\b")
FRAME = re.compile(
    r"File .?([^\s\"']{1,300}?).?, line (\d{1,6}), in (\S{1,80})"
    r"|([^\s\"']{1,300}\.py):(\d{1,6}):? (?:in )?(\w{1,80})"
)


@dataclass(frozen=True)
class Wording:
    """An entry: one way in which a mode shows."""

    mode: str | None
    says: tuple[str, ...]
    origin: str
    unless: tuple[str, ...] = ()
    proof: str = "sure"
    alone: bool = False
    kind: str = ""
    symptom: str = ""
    file: str = ""
    seen: tuple[str, ...] = ()


@dataclass(frozen=True)
class Candidate:
    mode: str | None
    score: float
    because: str


@dataclass(frozen=True)
class Answer:
    mode: str | None
    confidence: float
    candidates: tuple[Candidate, ...]

    def as_dict(self) -> dict:
        return asdict(self) | {"candidates": [asdict(each) for each in self.candidates]}


# What is known


def folder() -> Path:
    return ROOT / "notebooks" / "wordings"


@functools.cache
def catalog() -> dict:
    return json.loads((ROOT / "helpers" / "catalog.json").read_text())


@functools.cache
def wordings() -> tuple[Wording, ...]:
    """Those of all files, and the symptoms of all modes."""
    written = [each for path in sorted(folder().glob("*.toml")) for each in read(path)]
    narrowed = {(each.mode, each.symptom) for each in written if each.symptom}
    declared = [
        Wording(mode, (symptom["says"],), "MODE", symptom=symptom["says"])
        for mode, facts in catalog().items()
        for symptom in facts["symptoms"]
        if (mode, symptom["says"]) not in narrowed
    ]
    return tuple(written + declared)


def read(path: Path) -> list[Wording]:
    mode = None if path.stem == "none" else path.stem
    try:
        entries = tomllib.loads(path.read_text())["wording"]
        return [wording(mode, dict(entry)) for entry in entries]
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise Refused(f"{path.name} is no list of wordings: {error}.") from None


def wording(mode: str | None, entry: dict) -> Wording:
    says = listed(entry.pop("says", ()))
    if "symptom" in entry:
        says = (entry["symptom"], *says)
    rest = {name: listed(entry.pop(name, ())) for name in ("unless", "seen")}
    return Wording(mode, says, entry.pop("from"), **rest, **entry)


def listed(value) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


# Text


def shortened(text: str) -> str:
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}\n{text[-half:]}"


def clean(text: str) -> str:
    """Without colours and margins, in lines."""
    text = ANSI.sub("", shortened(text).replace("\r", "\n"))
    if "&" in text:
        text = html.unescape(text)
    return MARGIN.sub("", text)


def flat(text: str) -> str:
    """In one line, without case and quotes; Windows paths as others, and line breaks that are spelled as breaks."""
    text = text.translate(DROPPED).replace("\\n", " ").replace("\\", "/")
    return " ".join(text.lower().split())


def last_raised(text: str) -> str:
    """The text from its last error on; empty where nothing is raised."""
    places = [match.start() for match in RAISED.finditer(text)]
    return text[places[-1] :] if places else ""


def frame(text: str) -> str:
    """The last line of a traceback that the text still has."""
    found = [match.groups() for match in FRAME.finditer(text)]
    if not found:
        return ""
    path, line, function = [each for each in found[-1] if each]
    return shown(f"{path.replace(chr(92), '/').split('/')[-1]}, line {line}, in {function}")


# Phrases


@functools.cache
def phrases(words: str) -> tuple[tuple[str, ...], ...]:
    """Every way to read a phrase, each as the pieces that follow one another."""
    parts = re.split(r"\{([^{}]*\|[^{}]*)\}", words)
    choices = [part.split("|") if i % 2 else [part] for i, part in enumerate(parts)]
    read = ["".join(chosen) for chosen in itertools.product(*choices)]
    return tuple(tuple(flat(piece) for piece in way.split("...")) for way in read)


def stands(words: str, text: str) -> str:
    """What of a text these words fit; empty where they do not."""
    return next(filter(None, (followed(pieces, text) for pieces in phrases(words))), "")


def begins(words: str, text: str) -> str:
    """The same, where the end of the text has cut the words off."""
    return next(filter(None, (cut_off(pieces, text[-2 * GAP :]) for pieces in phrases(words))), "")


def followed(pieces: tuple[str, ...], text: str) -> str:
    if not all(piece in text for piece in pieces):
        return ""
    start = -1
    for _ in range(STARTS):
        start = text.find(pieces[0], start + 1)
        end = reached(pieces, text, start) if start >= 0 else 0
        if start < 0 or end:
            return text[start:end] if end else ""
    return ""


def cut_off(pieces: tuple[str, ...], end: str) -> str:
    """What is left of a phrase at the end of a text, where most of it stands and the rest was not pasted."""
    start = end.rfind(pieces[0][:STUB])
    if start < 0 or len(pieces[0]) < STUB:
        return ""
    kept, place = 0, start
    for piece in pieces:
        found = end.find(piece, place)
        if found < 0:
            kept += next((n for n in range(len(piece), 0, -1) if end.endswith(piece[:n], place)), 0)
            break
        kept, place = kept + len(piece), found + len(piece)
    return end[start:] if kept >= MOST[len(pieces) > 1] * sum(map(len, pieces)) else ""


def reached(pieces: tuple[str, ...], text: str, start: int) -> int:
    """Where the last piece ends, if each follows the one before; 0 if not."""
    for piece in pieces:
        start = text.find(piece, start, start + len(piece) + GAP)
        if start < 0:
            return 0
        start += len(piece)
    return start


@functools.cache
def expression(symptom: str):
    """A symptom as it reads in a flat text; what it repeats is bounded, so no text can keep it busy."""
    anywhere = re.sub(r"(^|\|)\^", r"\1", symptom).translate(dict.fromkeys(map(ord, "'\"`")))
    bounded = re.sub(r"(?<!\\)(\.|\\[a-zA-Z])[*+]", r"\1{1,500}", anywhere)
    return re.compile(
        re.sub(r"\\.|[A-Z]", lambda part: part[0] if part[0][1:] else part[0].lower(), bounded)
    )


# The answer


def triage(text: str, known=None) -> Answer:
    lines = clean(text)
    whole, last = flat(lines), flat(last_raised(lines))
    best = {}
    for each in wordings() if known is None else known:
        said = () if each.alone and last else fits(each, whole)
        if said:
            odds = odds_of(each, last)
            if odds > best.get((each.mode, each.kind), (0,))[0]:
                best[each.mode, each.kind] = (odds, said)
    return answer(best, frame(lines))


def fits(each: Wording, text: str) -> list[str]:
    """What the text says of a wording, if it says all of it and nothing that speaks against it."""
    said = [match_of(each, text)]
    said += [said[0] and stands(words, text) for words in each.says[1:]]
    return [] if not all(said) or any(stands(words, text) for words in each.unless) else said


def match_of(each: Wording, text: str) -> str:
    if not each.symptom:
        whole = stands(each.says[0], text)
        return whole or (begins(each.says[0], text) if each.proof != "certain" else "")
    match = expression(each.symptom).search(text)
    return match[0] if match else ""


def odds_of(each: Wording, last: str) -> float:
    share = PROOF[each.proof]
    counts = LAST if each.proof != "hint" and last and match_of(each, last) else 1
    return counts * share / (1 - share)


def answer(best: dict, where: str) -> Answer:
    """A mode is claimed if modes are likelier than all else together: known strangers, and the unknown."""
    total = 1 + UNKNOWN + sum(odds for odds, _ in best.values())
    found = tuple(
        Candidate(mode, round(odds / total, 3), because(kind, said, where))
        for (mode, kind), (odds, said) in sorted(best.items(), key=lambda item: -item[1][0])
    )
    modes = sum(each.score for each in found if each.mode)
    if found and found[0].mode and found[0].score >= FIRST and modes >= CLAIMED:
        return Answer(found[0].mode, found[0].score, found)
    return Answer(None, round(max(0, 1 - UNKNOWN / total - modes), 3), found)


def because(kind: str, said: list[str], where: str) -> str:
    words = " and ".join(f'"{shown(each)}"' for each in dict.fromkeys(said))
    return f"{kind}{': ' if kind else ''}it says {words}{f' ({where})' if where else ''}"


def shown(said: str) -> str:
    """As much as fits into a line, without signs that would steer a terminal."""
    kept = "".join(sign for sign in said if sign.isprintable())
    return kept if len(kept) <= SHOWN else f"{kept[: SHOWN // 2]} … {kept[-SHOWN // 2 :]}"
