"""How sure triage is where it goes by likeness: the likenesses of all modes and of none, made probabilities.

The weights are few, and fitted to labelled reports by what is known without them: `python tests/fit_triage.py FILE.jsonl ...`
prints them.
"""

import math

from .similarity import NO_MODE

# How fast the odds of a mode grow with its likeness, what a hint and what code of its kind add to it, and what speaks for none:
# `none` always, the others where nothing is wrong (calm), nobody tells it (remote), or few words are in common (thin).
# `none` decides how many descriptions are answered, and how many of none are claimed: 0.37 is nearest to reports of which three
# in five are of a mode. At 0.8, three of a hundred fewer that are of a mode are answered, and a fifth fewer are claimed of those
# that only look near.
BY_DESCRIPTION = {
    "sharp": 9.58, "hint": 0.88, "code": 4.16, "none": 0.8, "calm": 1.77, "remote": 0.46, "thin": 0.05
}  # fmt: skip
BY_ERROR = {
    "sharp": 3.7, "hint": 3.09, "code": 0.0, "none": 4.18, "calm": 0.0, "remote": 0.0, "thin": 1.14
}  # fmt: skip
# How likely a wording is right that names a mode, and how that grows with what the other words of a text say of it.
BY_WORDING = {"known": 2.13, "speaks": 5.28}
SUREST = 0.95  # likeness alone is never surer
# The power that makes a share how often the answer is right: more often, for a second answer may be as right.
ACCEPTED = 0.79
FEW = 3  # a text that has fewer words in common with any mode is thin


def shares_of(
    scores: dict, hints: dict[str, set], signs: dict[str, bool], weights: dict[str, float]
) -> dict:
    """A probability for each mode, and for none of them, which is called None; `hints` has by its name what hints at which."""
    odds = {
        mode: weights["sharp"] * score
        + sum(weights[name] * (mode in of) for name, of in hints.items())
        for mode, score in scores.items()
    }
    odds[None] += weights["none"] + sum(weights[name] * there for name, there in signs.items())
    most = max(odds.values())
    parts = {mode: math.exp(each - most) for mode, each in odds.items()}
    total = sum(parts.values())
    return {mode: min(SUREST, part / total) for mode, part in parts.items()}


def by_wording(mode: str | None, speaks: dict[str, float]) -> float:
    """How likely a mode is at most that a wording names, by how much more the text speaks for it than for none."""
    if mode is None:
        return 1
    more = BY_WORDING["speaks"] * more_than_none(mode, speaks)
    return 1 / (1 + math.exp(-BY_WORDING["known"] - more))


def more_than_none(mode: str, speaks: dict[str, float]) -> float:
    return speaks.get(mode, 0) - speaks.get(NO_MODE, 0)
