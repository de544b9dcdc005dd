"""Triage: from a pasted error to the failure mode that it shows, or to none of them.

What is known lies beside the notebooks: the symptoms that each MODE declares, and other wordings of the same mode in
wordings/fmNN.toml beside this file; none.toml holds what looks near and is none of the modes, by kind. A phrase there is matched
without case, quotes and line breaks; `...` stands for anything on the way, `{a|b}` for one of several. An entry says

    says     one phrase or several, all of which must stand in the text; the first is the error's own
    from     since when or in which version: "2.21" is checked against `file`; "words" are a reader's own, "MODE" is ours,
             "seen" comes from nothing but the reports of the repositories in `seen`, "other" is another program's
    unless   phrases that speak against it
    proof    how much it proves: certain, sure (if nothing is said), likely, hint
    alone    true for a warning, a frame or a reader's own words: it counts only where nothing is raised
    symptom  instead of the first phrase, a symptom of MODE that proves something only together with the rest
"""

from dataclasses import asdict, dataclass

from .known import Wording, wordings
from .phrases import begins, clean, expression, flat, frame, last_raised, shown, stands

# How often a text with these words is that mode.
PROOF = {"certain": 0.99, "sure": 0.95, "likely": 0.75, "hint": 0.4}
UNKNOWN = 0.1  # odds that a text without any known words is a mode after all
LAST = 3  # an error counts so many times more if nothing was raised after it
CLAIMED = 0.5  # below this, for all modes together, the answer is none,
FIRST = 0.4  # and below this for the likeliest: of two that are as likely, one is named and the other told
CLOSE = 0.15  # a runner-up is told from here on


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


# The answer


def triage(text: str, known=None) -> Answer:
    lines = clean(text)
    whole, last = flat(lines), flat(last_raised(lines))
    best = {}
    for each in wordings() if known is None else known:
        said = () if each.alone and last else said_in(each, whole)
        if said:
            odds = odds_of(each, last)
            if odds > best.get((each.mode, each.kind), (0,))[0]:
                best[each.mode, each.kind] = (odds, said)
    return weigh(best, frame(lines))


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


def weigh(best: dict, where: str) -> Answer:
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
