"""How sure triage is where it goes by likeness alone: two weighted sums of what it saw, made probabilities.

The weights are few, and fitted to labelled reports whose own wordings were left out: `python tests/fit_triage.py FILE.jsonl ...`
prints them.
"""

import math

# That the mode which is nearest is right, and that any mode is.
RIGHT = {
    "always": -1.66,
    "near": 1.19,
    "ahead": 4.38,
    "clear": 2.43,
    "thin": -1.02,
    "calm": -1.01,
    "raised": -2.38,
}
ANY = {
    "always": -0.67,
    "near": 1.17,
    "ahead": 1.54,
    "clear": 3.04,
    "thin": -0.87,
    "calm": -1.32,
    "raised": -2.56,
}
SUREST = 0.95  # likeness alone is never surer
FEW = 3  # a text that has fewer words in common with any mode is thin


def signs_of(scores: list[float], strangers: float, shared: int, calm: bool, raised: bool) -> dict:
    """`near`: how like the nearest mode a text is; `ahead`: how much more than the next; `clear`: and than what is none."""
    first, second = [*scores, 0, 0][:2]
    return {
        "always": 1,
        "near": first,
        "ahead": first - second,
        "clear": first - strangers,
        "thin": shared < FEW,
        "calm": calm,
        "raised": raised,
    }


def chance(weights: dict[str, float], signs: dict[str, float]) -> float:
    return 1 / (1 + math.exp(-sum(weights[name] * value for name, value in signs.items())))


def shares_of(
    scores: list[float], signs: dict[str, float], sharp: float
) -> tuple[list[float], float]:
    """A probability for each mode, the nearest first, and that it is none of them."""
    right = min(SUREST, chance(RIGHT, signs))
    some = max(right, chance(ANY, signs))
    odds = [math.exp(sharp * score) for score in scores[1:]]
    rest = [min(right, (some - right) * each / sum(odds)) for each in odds]
    return [right, *rest], 1 - some
