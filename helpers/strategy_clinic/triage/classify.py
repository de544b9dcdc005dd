"""Triage: from a pasted error to the failure mode that it shows, or to none of them.

What is known lies beside the notebooks: the symptoms that each MODE declares, and other wordings of the same mode in
wordings/fmNN.toml beside this file; none.toml holds what looks near and is none of the modes, by kind. A phrase there is matched
without case, quotes and line breaks, and as words of its own; `...` stands for anything on the way, `{a|b}` for one of several.
An entry says

    says     one phrase or several, all of which must stand in the text; the first is the error's own
    from     since when or in which version: "2.21" is checked against `file`; "words" are a reader's own, "MODE" is ours,
             "seen" comes from nothing but the reports of the repositories in `seen`, "other" is another program's
    unless   phrases that speak against it
    proof    how much it proves: certain, sure (if nothing is said), likely, hint
    alone    true for a warning, a frame or a reader's own words: it counts only where nothing is raised
    frame    true for what a traceback names: it counts only where no message is known, as when the message is cut off
    symptom  instead of the first phrase, a symptom of MODE that proves something only together with the rest

A text in which no wording proves anything is compared with all that is known by its words, in likeness.py.
"""

from dataclasses import asdict, dataclass

from . import calibration, code_patterns, similarity
from .phrases import (
    begins,
    clean,
    expression,
    flat,
    frame,
    is_cut_off,
    last_raised,
    shown,
    stands,
    without_warnings,
)
from .wording_index import Knowledge, everything
from .wordings import Wording

# How often a text with these words is that mode.
PROOF = {"certain": 0.99, "sure": 0.95, "likely": 0.75, "hint": 0.4}
UNHEARD = 0.1  # odds that a text without any known words is a mode after all
LAST = 3  # an error counts so many times more if nothing was raised after it
FIRST = 0.4  # below this for the likeliest mode, the answer is none: of two that are as likely, one is named and the other told
CLOSE = 0.15  # a runner-up is told from here on
SURE = 0.8  # below this, what the text is like is told too
THREE = 3  # candidates, at most, of which some are no more than likely


# Where this is how likely all modes together are, the first that a text is like is an answer; below, a question.
ANSWERED = 0.7


@dataclass(frozen=True)
class Candidate:
    mode: str | None
    score: float
    because: str


@dataclass(frozen=True)
class Answer:
    """`known` is false where nothing that is known of modes or of strangers proves anything: then candidates are guesses."""

    mode: str | None
    confidence: float
    candidates: tuple[Candidate, ...]
    known: bool = True

    def as_dict(self) -> dict:
        """What a program gets: without `known`, which the reasons of the candidates say."""
        said = asdict(self)
        return {name: said[name] for name in ("mode", "confidence", "candidates")}


# The answer


def triage(text: str, knowledge: Knowledge | None = None) -> Answer:
    knowledge = knowledge or everything()
    lines = clean(text)
    raised = last_raised(lines)
    whole, last = flat(lines), flat(raised)
    found = [
        (each, said) for each in knowledge.near(whole) if (said := all_said(each, whole, last))
    ]
    proven = [pair for pair in found if proves(pair[0])]
    if not raised and all(each.mode is None and each.proof == "likely" for each, _ in proven):
        proven = []  # what a description mentions on its way does not make it a stranger
    hints = {each.mode for each, _ in found if not each.frame} - {each.mode for each, _ in proven}
    if not proven and is_cut_off(raised):
        proven = [pair for pair in found if pair[0].frame]
    if not proven and not raised and not frame(lines):
        return guess(
            lines, knowledge, hints, calibration.BY_DESCRIPTION, code_patterns.spoken_by(text)
        )
    lines = without_warnings(lines)
    if not proven:
        return guess(lines, knowledge, hints, calibration.BY_ERROR)
    # Only modes are believed as far as other words allow: a stranger alone needs no index.
    names_mode = any(each.mode for each, _ in proven)
    speaks = similarity.spoken_for(lines, knowledge.index) if names_mode else {}
    answer = weigh(best_of(proven, last), frame(lines), speaks)
    if answer.confidence >= SURE:
        return answer
    return with_more(answer, guess(lines, knowledge, hints, calibration.BY_ERROR))


def all_said(each: Wording, whole: str, last: str) -> list[str]:
    return [] if each.alone and last else said_in(each, whole)


def proves(each: Wording) -> bool:
    """Whether a wording answers by itself; hints and a reader's own words only make a mode likelier."""
    own = each.alone and each.origin in ("words", "seen")
    return not (each.frame or each.proof == "hint" or own)


def best_of(found: list, last: str) -> dict:
    best = {}
    for each, said in found:
        odds = odds_of(each, last)
        if odds > best.get((each.mode, each.kind), (0,))[0]:
            best[each.mode, each.kind] = (odds, said, each.fixed)
    return best


def said_in(each: Wording, text: str) -> list[str]:
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


def weigh(best: dict, where: str, speaks: dict[str, float]) -> Answer:
    """A mode is claimed if it is likelier than known strangers and the unknown, and the other words of the text allow it."""
    total = 1 + UNHEARD + sum(odds for odds, *_ in best.values())
    found = [
        Candidate(
            mode,
            round(min(odds / total, calibration.by_wording(mode, speaks)), 3),
            because(kind, said, where) + upstream(fixed),
        )
        for (mode, kind), (odds, said, fixed) in best.items()
    ]
    found = tuple(sorted(found, key=lambda each: -each.score))
    if found[0].mode and found[0].score >= FIRST:
        return Answer(found[0].mode, found[0].score, found)
    modes = sum(each.score for each in found if each.mode)
    return Answer(None, round(max(0, 1 - UNHEARD / total - modes), 3), found)


def because(kind: str, said: list[str], where: str) -> str:
    words = " and ".join(map(quoted, dict.fromkeys(said)))
    return f"{kind}{': ' if kind else ''}it says {words}{f' ({where})' if where else ''}"


def upstream(fixed: str) -> str:
    return f"; fixed upstream in {fixed}" if fixed else ""


# By what a text is like


def guess(
    text: str, knowledge: Knowledge, hints: set, weights: dict, coded: dict[str, str] | None = None
) -> Answer:
    """The modes whose descriptions and wordings share most with a text, none of which is proven; `coded` is what its code has."""
    coded = coded or {}
    near = {each.mode: each for each in similarity.likest(text, knowledge.index)}
    scores = {mode: each.score for mode, each in near.items()}
    signs = {
        "calm": not similarity.says_trouble(text),
        "remote": not similarity.is_told(text),
        "thin": max(each.shared for each in near.values()) < calibration.FEW,
    }
    shares = calibration.shares_of(scores, {"hint": hints, "code": set(coded)}, signs, weights)
    nothing = shares.pop(None)
    likeliest = sorted(shares, key=lambda mode: -shares[mode])[:THREE]
    found = tuple(
        Candidate(
            mode, round(shares[mode], 3), by_code(coded.get(mode, "")) + by_words(near[mode].words)
        )
        for mode in likeliest
    )
    if 1 - nothing >= ANSWERED and found[0].score >= FIRST:
        first, share = found[0].mode, found[0].score
    else:
        first, share = None, nothing
    return Answer(first, round(share**calibration.ACCEPTED, 3), found, known=False)


def by_code(said: str) -> str:
    return f"its code has {quoted(said)}; " if said else ""


def by_words(words: tuple[str, ...]) -> str:
    return f"its words are near: {', '.join(map(quoted, words))}"


def with_more(answer: Answer, near: Answer) -> Answer:
    """What was recognised, and behind it what the text is like, up to three."""
    told = {each.mode for each in answer.candidates}
    left = 1 - sum(each.score for each in answer.candidates)
    more = [each for each in near.candidates if each.mode not in told]
    likely = tuple(Candidate(each.mode, round(each.score * left, 3), each.because) for each in more)
    return Answer(answer.mode, answer.confidence, (answer.candidates + likely)[:THREE])


def quoted(words: str) -> str:
    return f'"{shown(words)}"'
