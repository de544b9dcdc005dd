"""Shares of programs and of findings with their 95 % intervals: what a small set of programs says about others."""

import math
from collections.abc import Callable, Sequence

from ..findings import Finding, counted

MISSED_BY_CHANCE = 0.025  # on each side
HALVINGS = 40


def interval(hits: int, trials: int) -> tuple[float, float]:
    """Returns the bounds of the share that `hits` of `trials` come from, by Clopper and Pearson; all shares without trials."""
    if not trials:
        return 0.0, 1.0
    lower = crossing(lambda p: at_least(hits, trials, p)) if hits else 0.0
    upper = 1 - crossing(lambda p: at_least(trials - hits, trials, p)) if hits < trials else 1.0
    return lower, upper


def at_least(hits: int, trials: int, share: float) -> float:
    """Returns how probable as many hits or more are."""
    return sum(
        math.comb(trials, n) * share**n * (1 - share) ** (trials - n)
        for n in range(hits, trials + 1)
    )


def crossing(rising: Callable[[float], float]) -> float:
    """Returns the share at which a probability that rises with it is that of a chance miss."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < MISSED_BY_CHANCE else (low, middle)
    return low


def rate(hits: int, trials: int, what: str) -> str:
    """Returns such as "38 of 40 faults named (83 to 99 %)"."""
    low, high = (round(100 * bound) for bound in interval(hits, trials))
    return f"{hits} of {trials} {what} ({low} to {high} %)"


def beside_in_words(false: Sequence[Sequence[Finding]]) -> str:
    """Returns how much else was found in programs with a fault, and in how many of them."""
    programs = counted(sum(map(bool, false)), "program")
    return f"{counted(sum(map(len, false)), 'false finding')} beside, in {programs}"


def precision(right: int, findings: int) -> str:
    return rate(right, findings, "findings right")
