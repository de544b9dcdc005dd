"""The answer of triage: which failure mode a pasted text shows, or which ones to ask about.

Only a wording names a mode. A text in which no wording proves anything is compared with all that is known by its words; the
nearest modes are questions to the reader and no answer, for most texts that are near a mode are of none.
"""

import functools
import math
from collections import defaultdict
from dataclasses import dataclass, replace

from . import code_patterns, known_errors, near, phrases, similarity
from .report_text import Flat, ReportText, displayed
from .wordings import Wording, wordings

# How often a text with a wording is of its mode.
PROOF = {"certain": 0.99, "sure": 0.95, "likely": 0.75, "near": 0.75, "part": 0.75, "hint": 0.4}
SAYS = {"near": "it nearly says", "part": "it has a part of its message:"}
SUREST = 0.93  # how often a wording is right among labelled reports, whatever it proves
UNKNOWN = 0.1  # odds that a text without any known words is of a mode after all
LAST = 3  # an error counts so many times more if nothing was raised after it
RELEASE = 3  # a known error counts so many times more if the text names one of its releases
FIRST = 0.4  # below this no mode is named; of two that are as likely, one is
MOST = 3  # candidates

# Similarity as odds of a mode: how fast they grow with it, and the odds of none, in a description and beside an error; and what
# a hint, a little part of a message and a pattern in the code add. The values are round: what tools/score_triage.py says changes
# little over a wide range.
DESCRIPTION, ERROR = (10, 2), (4, 5)
HINT, LITTLE_PART, CODE = 2, 4, 4


Match = tuple[Wording, list[str]]  # what of a text fits its phrases


@dataclass(frozen=True)
class Candidate:
    mode: str | None
    score: float
    because: str
    fix: str = ""  # of the wording, where that of the mode does not help
    error: str = ""  # the id of a known error of Keras or TensorFlow
    kind: str = ""  # what it is instead of a mode

    def as_dict(self) -> dict[str, object]:
        """Returns what a program needs of it: of a known error also what to do, and its issue."""
        named: dict[str, object] = {"mode": self.mode, "score": self.score, "because": self.because}
        if not self.error:
            return named
        url = known_errors.known_errors()[self.error].url
        return named | {"error": self.error, "fix": self.fix, "issue": url}


@dataclass(frozen=True)
class Answer:
    """`known` is false where no wording proves anything: then the mode is None, and the candidates are to be asked about."""

    mode: str | None
    confidence: float
    candidates: tuple[Candidate, ...]
    known: bool = True
    is_error: bool = False  # of what is not known: an error was pasted, and no description

    def as_dict(self) -> dict[str, object]:
        """Returns the answer for a program: without `known`, which the reasons say, and with fixes of known errors only."""
        candidates = [each.as_dict() for each in self.candidates]
        return {"mode": self.mode, "confidence": self.confidence, "candidates": candidates}


def triage(pasted: str, entries: tuple[Wording, ...] | None = None) -> Answer:
    """Returns the mode that a text shows, or None with the modes to ask about; `entries` are all wordings if not given."""
    entries, text = entries or wordings(), ReportText(pasted)
    matches = [
        (wording, said)
        for wording in begun(entries, text.flat)
        if not (wording.alone and text.raised) and (said := matched(wording, text.flat))
    ]
    proven = [(wording, said) for wording, said in matches if proves(wording)]
    if not text.raised and all(is_mention(wording) for wording, _ in proven):
        proven = []  # a description that mentions something else may still be of a mode
    if not proven and text.is_cut_off:
        proven = [(wording, said) for wording, said in matches if wording.frame]
    return weigh(proven, text) if proven else by_likeness(text, entries, matches)


# By wordings


def begun(entries: tuple[Wording, ...], text: Flat) -> list[Wording]:
    """Returns the wordings that a text may have: it has the beginning of their first phrase."""
    beginnings = numbers_by_beginning(entries).items()
    found = {number for begins, numbers in beginnings if begins in text for number in numbers}
    return [entries[number] for number in sorted(found)]


@functools.lru_cache(8)
def numbers_by_beginning(entries: tuple[Wording, ...]) -> dict[str, list[int]]:
    """Returns the numbers of wordings by how they begin; an expression may begin in any way, as "" says."""
    numbers = defaultdict(list)
    for number, entry in enumerate(entries):
        for first, *_ in phrases.readings(entry.says[0]) if not entry.symptom else [("",)]:
            numbers[first[: phrases.STUB]].append(number)
    return dict(numbers)


def proves(wording: Wording) -> bool:
    """Returns whether a wording answers by itself; hints and a reader's own words only make a mode likelier."""
    own_words = wording.alone and wording.origin in ("words", "seen")
    return not (wording.frame or wording.proof == "hint" or own_words)


def is_mention(wording: Wording) -> bool:
    """Returns whether a description that has it may only mention what is no mode."""
    return wording.mode is None and wording.proof == "likely" and not wording.error


def matched(wording: Wording, text: Flat) -> list[str]:
    """Returns what fits each phrase of a wording; empty if one is missing, or if something speaks against it."""
    first = first_match(wording, text)
    return with_context(wording, first, text) if first else []


def with_context(wording: Wording, first: str, text: Flat) -> list[str]:
    """Returns what fits the first phrase, and what fits the others; empty if one is missing, or something speaks against it."""
    said = [first, *(phrases.matched(phrase, text) for phrase in wording.says[1:])]
    return said if all(said) and not speaks_against(wording, text) else []


def speaks_against(wording: Wording, text: Flat) -> bool:
    return is_of_another_release(wording, text) or any(
        phrases.matched(phrase, text) for phrase in wording.unless
    )


def is_of_another_release(wording: Wording, text: Flat) -> bool:
    """Returns whether a text names no release that has a known error, but another one, or none where one is needed."""
    if not wording.releases:
        return False
    is_named = wording.releases.in_text(text)
    return is_named is False or (wording.named and not is_named)


def first_match(wording: Wording, text: Flat) -> str:
    if wording.symptom:
        match = phrases.expression(wording.symptom).search(text)
        return match[0] if match else ""
    whole = phrases.matched(wording.says[0], text)
    if whole or wording.proof == "certain":
        return whole
    return phrases.matched_at_end(wording.says[0], text)


def weigh(proven: list[Match], text: ReportText) -> Answer:
    """Returns the likeliest mode, if it is likelier than what is not a mode, and the unknown."""
    best: dict[tuple[str | None, str], tuple[float, Wording, list[str]]] = {}
    for wording, said in proven:
        odds = odds_of(wording, text)
        if odds > best.get((wording.mode, wording.kind), (0,))[0]:
            best[wording.mode, wording.kind] = odds, wording, said
    total = 1 + UNKNOWN + sum(odds for odds, _, _ in best.values())
    scores = [
        Candidate(
            wording.mode,
            round(min(odds / total, SUREST), 3),
            reason(wording, said, text.last_frame),
            wording.fix,
            wording.error,
            wording.kind,
        )
        for odds, wording, said in best.values()
    ]
    first, *others = sorted(scores, key=lambda candidate: -candidate.score)
    if first.mode and first.score >= FIRST:
        return Answer(first.mode, first.score, (first, *others))
    of_modes = sum(candidate.score for candidate in scores if candidate.mode)
    return Answer(None, round(max(0, 1 - UNKNOWN / total - of_modes), 3), (first, *others))


def odds_of(wording: Wording, text: ReportText) -> float:
    share, raised = PROOF[wording.proof], text.flat_raised
    is_last = wording.proof != "hint" and raised and first_match(wording, raised)
    is_named = wording.releases and wording.releases.in_text(text.flat)
    return (LAST if is_last else 1) * (RELEASE if is_named else 1) * share / (1 - share)


def reason(wording: Wording, said: list[str], frame: str) -> str:
    words = " and ".join(map(quoted, dict.fromkeys(said)))
    kind = f"{wording.kind}: " if wording.kind else ""
    where = f" ({frame})" if frame else ""
    fixed = f"; fixed upstream in {wording.fixed}" if wording.fixed else ""
    return f"{kind}{SAYS.get(wording.proof, 'it says')} {words}{where}{fixed}"


# By what is nearly said


def by_likeness(text: ReportText, entries: tuple[Wording, ...], matches: list[Match]) -> Answer:
    """Returns the mode that a text nearly names, or the modes to ask about; `matches` have been judged."""
    known = {wording for wording, _ in matches}
    words, part = near.plain(text.flat)[-near.READ :], near.short(text.flat)
    found = near.index_of(entries).wordings_for(words, part)
    usable = [entry for entry in found if may_be_near(entry, text) and entry not in known]
    shares = shares_of_messages(usable, part, text.flat)
    if nearly := with_errors(usable, words, text.flat) or halves(shares, text.flat):
        return weigh(nearly, text)
    hints = {wording.mode for wording, _ in matches if not wording.frame}
    return ask(text, entries, hints, modes_of_parts(shares))


def may_be_near(wording: Wording, text: ReportText) -> bool:
    """Returns whether a text that nearly has a wording is answered by it: one that only mentions something else is not."""
    return proves(wording) and not (wording.alone if text.raised else is_mention(wording))


def with_errors(usable: list[Wording], words: str, text: Flat) -> list[Match]:
    """Returns the wordings that a text has with a few letters wrong; `words` are its own without signs."""
    found = ((entry, near.with_errors(entry, words)) for entry in usable)
    said = [(entry, with_context(entry, first, text)) for entry, first in found if first]
    return [(replace(entry, proof="near"), each) for entry, each in said if each]


def shares_of_messages(usable: list[Wording], words: str, text: Flat) -> dict[Wording, float]:
    """Returns the wordings of which a short text is a part, and how much of each it is."""
    whole = [entry for entry in usable if len(entry.says) == 1 or entry.symptom] if words else []
    shares = {entry: share for entry in whole if (share := near.part(entry, words))}
    return {entry: share for entry, share in shares.items() if not speaks_against(entry, text)}


def halves(shares: dict[Wording, float], text: Flat) -> list[Match]:
    """Returns the wordings of which a short text is a part, if it is at least a half of one and nothing else is needed."""
    alone = {entry: share for entry, share in shares.items() if len(entry.says) == 1}
    if max(alone.values(), default=0) < near.HALF:
        return []
    entries = (entry for entry, share in alone.items() if share >= near.LITTLE)
    return [(replace(entry, proof="part"), [text]) for entry in entries]


def modes_of_parts(shares: dict[Wording, float]) -> set[str | None]:
    """Returns the modes of whose messages a text is a little part; none if many have it."""
    modes = {entry.mode for entry, share in shares.items() if share >= near.LITTLE}
    return modes if len(modes) <= MOST else set()


# By similarity


def ask(
    text: ReportText, entries: tuple[Wording, ...], hints: set[str | None], parts: set[str | None]
) -> Answer:
    """Returns no mode, and those to ask about whose words, or whose code in a description, are nearest."""
    code = code_patterns.modes_by_code(text.code) if text.is_description else {}
    sharpness, of_none = DESCRIPTION if text.is_description else ERROR
    nearest = similarity.nearest_modes(text.prose, similarity.index_of(entries))
    odds = {
        mode.id: math.exp(
            sharpness * mode.score
            + HINT * (mode.id in hints)
            + LITTLE_PART * (mode.id in parts)
            + CODE * (mode.id in code)
        )
        for mode in nearest
    }
    none = odds[None] * math.exp(of_none)
    modes = sorted((mode for mode in nearest if mode.id), key=lambda mode: -odds[mode.id])[:MOST]
    total = none + sum(odds[mode.id] for mode in modes)
    candidates = tuple(
        Candidate(mode.id, round(odds[mode.id] / total, 3), likeness(mode.words, code.get(mode.id)))
        for mode in modes
    )
    return Answer(
        None, round(none / total, 3), candidates, known=False, is_error=not text.is_description
    )


def likeness(words: tuple[str, ...], code: str | None) -> str:
    has_code = f"its code has {quoted(code)}; " if code else ""
    return f"{has_code}its words are near: {', '.join(map(quoted, words))}"


def quoted(words: str) -> str:
    return f'"{displayed(words)}"'
