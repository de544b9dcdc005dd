"""The answer of triage: which failure mode a pasted text shows, or which ones to ask about.

Only a wording names a mode. A text in which no wording proves anything is compared with all that is known by its words; the
nearest modes are questions to the reader and no answer, for most texts that are near a mode are of none.
"""

import math
from dataclasses import asdict, dataclass

from . import code_patterns, phrases, similarity
from .report_text import Flat, ReportText, displayed
from .wordings import Wording, wordings

# How often a text with a wording is of its mode.
PROOF = {"certain": 0.99, "sure": 0.95, "likely": 0.75, "hint": 0.4}
SUREST = 0.93  # how often a wording is right among labelled reports, whatever it proves
UNKNOWN = 0.1  # odds that a text without any known words is of a mode after all
LAST = 3  # an error counts so many times more if nothing was raised after it
FIRST = 0.4  # below this no mode is named; of two that are as likely, one is
MOST = 3  # candidates

# Similarity as odds of a mode: how fast they grow with it, and the odds of none, in a description and beside an error; and what
# a hint and a pattern in the code add. The values are round: what tools/score_triage.py says changes little over a wide range.
DESCRIPTION, ERROR = (10, 2), (4, 5)
HINT, CODE = 2, 4


@dataclass(frozen=True)
class Candidate:
    mode: str | None
    score: float
    because: str


@dataclass(frozen=True)
class Answer:
    """`known` is false where no wording proves anything: then the mode is None, and the candidates are to be asked about."""

    mode: str | None
    confidence: float
    candidates: tuple[Candidate, ...]
    known: bool = True

    def as_dict(self) -> dict[str, object]:
        """Returns the answer for a program: without `known`, which the reasons of the candidates say."""
        answer = asdict(self)
        del answer["known"]
        return answer


def triage(pasted: str, entries: tuple[Wording, ...] | None = None) -> Answer:
    """Returns the mode that a text shows, or None with the modes to ask about; `entries` are all wordings if not given."""
    entries, text = entries or wordings(), ReportText(pasted)
    matches = [
        (wording, said)
        for wording in entries
        if not (wording.alone and text.raised) and (said := matched(wording, text.flat))
    ]
    proven = [(wording, said) for wording, said in matches if proves(wording)]
    is_mention = all(wording.mode is None and wording.proof == "likely" for wording, _ in proven)
    if not text.raised and is_mention:
        proven = []  # a description that mentions something else may still be of a mode
    if not proven and text.is_cut_off:
        proven = [(wording, said) for wording, said in matches if wording.frame]
    hints = {wording.mode for wording, _ in matches if not wording.frame}
    return weigh(proven, text) if proven else ask(text, entries, hints)


# By wordings


def proves(wording: Wording) -> bool:
    """Returns whether a wording answers by itself; hints and a reader's own words only make a mode likelier."""
    own_words = wording.alone and wording.origin in ("words", "seen")
    return not (wording.frame or wording.proof == "hint" or own_words)


def matched(wording: Wording, text: Flat) -> list[str]:
    """Returns what fits each phrase of a wording; empty if one is missing, or if something speaks against it."""
    first = first_match(wording, text)
    if not first:
        return []
    said = [first, *(phrases.matched(phrase, text) for phrase in wording.says[1:])]
    if not all(said) or any(phrases.matched(phrase, text) for phrase in wording.unless):
        return []
    return said


def first_match(wording: Wording, text: Flat) -> str:
    if wording.symptom:
        match = phrases.expression(wording.symptom).search(text)
        return match[0] if match else ""
    whole = phrases.matched(wording.says[0], text)
    if whole or wording.proof == "certain":
        return whole
    return phrases.matched_at_end(wording.says[0], text)


def weigh(proven: list[tuple[Wording, list[str]]], text: ReportText) -> Answer:
    """Returns the likeliest mode, if it is likelier than what is not a mode, and the unknown."""
    best: dict[tuple[str | None, str], tuple[float, str]] = {}
    for wording, said in proven:
        odds = odds_of(wording, text.flat_raised)
        if odds > best.get((wording.mode, wording.kind), (0,))[0]:
            best[wording.mode, wording.kind] = odds, reason(wording, said, text.last_frame)
    total = 1 + UNKNOWN + sum(odds for odds, _ in best.values())
    scores = [
        Candidate(mode, round(min(odds / total, SUREST), 3), because)
        for (mode, _), (odds, because) in best.items()
    ]
    first, *others = sorted(scores, key=lambda candidate: -candidate.score)
    if first.mode and first.score >= FIRST:
        return Answer(first.mode, first.score, (first, *others))
    of_modes = sum(candidate.score for candidate in scores if candidate.mode)
    return Answer(None, round(max(0, 1 - UNKNOWN / total - of_modes), 3), (first, *others))


def odds_of(wording: Wording, raised: Flat) -> float:
    share = PROOF[wording.proof]
    is_last = wording.proof != "hint" and raised and first_match(wording, raised)
    return (LAST if is_last else 1) * share / (1 - share)


def reason(wording: Wording, said: list[str], frame: str) -> str:
    words = " and ".join(map(quoted, dict.fromkeys(said)))
    kind = f"{wording.kind}: " if wording.kind else ""
    where = f" ({frame})" if frame else ""
    fixed = f"; fixed upstream in {wording.fixed}" if wording.fixed else ""
    return f"{kind}it says {words}{where}{fixed}"


# By similarity


def ask(text: ReportText, entries: tuple[Wording, ...], hints: set[str | None]) -> Answer:
    """Returns no mode, and those to ask about whose words, or whose code in a description, are nearest."""
    code = code_patterns.modes_by_code(text.code) if text.is_description else {}
    sharpness, of_none = DESCRIPTION if text.is_description else ERROR
    near = similarity.nearest_modes(text.prose, similarity.index_of(entries))
    odds = {
        mode.id: math.exp(
            sharpness * mode.score + HINT * (mode.id in hints) + CODE * (mode.id in code)
        )
        for mode in near
    }
    none = odds[None] * math.exp(of_none)
    modes = sorted((mode for mode in near if mode.id), key=lambda mode: -odds[mode.id])[:MOST]
    total = none + sum(odds[mode.id] for mode in modes)
    candidates = tuple(
        Candidate(mode.id, round(odds[mode.id] / total, 3), likeness(mode.words, code.get(mode.id)))
        for mode in modes
    )
    return Answer(None, round(none / total, 3), candidates, known=False)


def likeness(words: tuple[str, ...], code: str | None) -> str:
    has_code = f"its code has {quoted(code)}; " if code else ""
    return f"{has_code}its words are near: {', '.join(map(quoted, words))}"


def quoted(words: str) -> str:
    return f'"{displayed(words)}"'
