"""Defines the stages of a step in their order, and for each what must be equal to what."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .values import Value

SAME = 1e-3  # relative to the largest number: sums of parts agree to 1e-6 on CPUs
SAME_IN_HALF_PRECISION = 5e-2
GATHER = "GATHER"
MOST_QUOTED = 140  # letters of what a program printed or raised
SMALLEST = 1e-9  # below which numbers are compared as they are
HALF = "float16", "bfloat16"
Vector = tuple[float, ...]
NUMBER = re.compile(
    r"-?\d+(?:\.\d*)?(?:e[+-]?\d+)?|0x[0-9a-f]+"
)  # such as a time, in what a program prints
# From what replicas hold, what one device holds, how it was aggregated, and the size of what is compared, to the words for
# what differs; none if nothing does.
Rule = Callable[["Held"], str]


@dataclass(frozen=True)
class Held:
    """What is compared in one row."""

    cells: tuple[Value | None, ...]  # of each replica
    alone: Value | None  # of one device with the same examples
    how: str  # it is aggregated
    scale: float  # the largest number of the row, or of all rows of its stage

    @property
    def known(self) -> list[Value]:
        return [cell for cell in self.cells if cell is not None]


@dataclass(frozen=True)
class Stage:
    key: str
    title: str
    about: str  # what must be equal to what, in words
    rule: Rule
    has_one_scale: bool = False  # a number is small only beside those of all rows of the stage
    is_of_parts: bool = False  # each replica has its part of what is aggregated later

    @property
    def is_in_picture(self) -> bool:
        return self.key in PICTURED

    def comparison(self, held: Held) -> str:
        """Returns a word of `COMPARISONS`; none where nothing is known to compare with."""
        return COMPARISON_OF[self.rule](held) if held.known else ""


# Rules


def nothing_is_said(held: Held) -> str:
    return ""


def parts_add_up(held: Held) -> str:
    """Compares the sum of the parts with one device; their mean, where means are taken of them."""
    values = held.known
    if (
        held.alone is None
        or len(values) < 1
        or any(not same_form(each, held.alone) for each in values)
    ):
        return ""
    times = len(values) if held.how.endswith("MEAN") else 1
    whole = tuple(sum(entries) / times for entries in zip(*(each.entries for each in values)))
    word = "mean" if times > 1 or held.how.endswith("MEAN") else "sum"
    return difference(f"their {word}", whole, held)


def is_equal(held: Held) -> str:
    """Compares copies with each other, and the first one with one device."""
    return copies_agree(held) or equals_alone(held)


def copies_agree(held: Held) -> str:
    same = all(close(held.known[0].entries, each.entries, held) for each in held.known[1:])
    return "" if same else "the copies differ"


def equals_alone(held: Held) -> str:
    values = held.known
    if held.alone is None or not values:
        return ""
    if not is_comparable(held):
        return ""
    if values[0].shape != held.alone.shape:
        return f"its shape is {shown_shape(values[0])}, on one device {shown_shape(held.alone)}"
    return difference("it", values[0].entries, held)


def is_comparable(held: Held) -> bool:
    """Tells whether one device can have the same: what is gathered may have a part for each replica."""
    return held.how != GATHER or bool(held.alone and held.known[0].shape == held.alone.shape)


def copies_or_parts(held: Held) -> str:
    """Compares a variable: its copies, or the sum or mean of what replicas keep for themselves."""
    return parts_add_up(held) if held.how in ("SUM", "MEAN") else is_equal(held)


def same_examples(held: Held) -> str:
    values, alone = held.known, held.alone
    if len(values) == 1 < len(held.cells):
        return f"only replica {held.cells.index(values[0])} has examples"
    if alone is None or not alone.rows:
        return ""
    if not all(each.shape for each in values):
        return ""
    if len(values) > 1 and all(sorted(each.rows) == sorted(alone.rows) for each in values):
        return "each replica holds all examples of one device"
    mine = sorted(row for each in values for row in each.rows)
    if mine == sorted(alone.rows):
        return ""
    count = sum(each.shape[0] for each in values)
    if count != alone.shape[0]:
        return f"{count} examples, on one device {alone.shape[0]}"
    return "other examples than on one device"


def are_distinct(held: Held) -> str:
    values = held.known
    same = len(values) > 1 and all(each.entries == values[0].entries for each in values)
    return "all replicas drew the same numbers" if same and values[0].size > 1 else ""


def ends_alike(held: Held) -> str:
    """Compares words, not the numbers in them: they may be times, and numbers that matter are compared in other rows."""
    if held.alone is None or not held.known:
        return ""
    mine, theirs = held.known[0].words, held.alone.words
    same = NUMBER.sub("", mine) == NUMBER.sub("", theirs)
    return "" if same else f"it is “{mine[:MOST_QUOTED]}”, on one device “{theirs[:MOST_QUOTED]}”"


# Which comparison a rule makes


def of_parts(held: Held) -> str:
    known = held.alone and all(same_form(each, held.alone) for each in held.known)
    return ("mean" if held.how.endswith("MEAN") else "sum") if known else ""


def of_copies(held: Held) -> str:
    return "same" if held.alone or len(held.known) > 1 else ""


def of_variables(held: Held) -> str:
    return of_parts(held) if held.how in ("SUM", "MEAN") else of_copies(held)


def of_one(held: Held) -> str:
    return "same" if held.alone and is_comparable(held) else ""


def of_examples(held: Held) -> str:
    return "together" if held.alone and held.alone.rows else ""


def of_drawn(held: Held) -> str:
    return "distinct" if len(held.known) > 1 else ""


def of_nothing(held: Held) -> str:
    return ""


COMPARISON_OF: dict[Rule, Rule] = {
    parts_add_up: of_parts,
    is_equal: of_copies,
    copies_or_parts: of_variables,
    equals_alone: of_one,
    ends_alike: of_one,
    same_examples: of_examples,
    are_distinct: of_drawn,
    nothing_is_said: of_nothing,
}
COMPARISONS = {
    "together": "the replicas' examples together are those of one device",
    "distinct": "replicas draw different numbers",
    "sum": "the replicas' numbers add up to that of one device",
    "mean": "the mean of the replicas' numbers is that of one device",
    "quotient": "total / count, added up over the replicas, is that of one device",
    "same": "each replica has the same, and one device, too",
}


# Comparisons


def same_form(one: Value, other: Value) -> bool:
    return one.shape == other.shape and len(one.entries) == len(other.entries)


def close(one: Vector, other: Vector, held: Held) -> bool:
    if len(one) != len(other):
        return False
    limit = tolerance(held) * max(held.scale, SMALLEST)
    return all(a == b or abs(a - b) <= limit or (a != a and b != b) for a, b in zip(one, other))


def tolerance(held: Held) -> float:
    values = [*held.known, *([held.alone] if held.alone else [])]
    half = any(each.dtype in HALF for each in values)
    return SAME_IN_HALF_PRECISION if half else SAME


def difference(subject: str, mine: Vector, held: Held) -> str:
    """Returns how numbers differ from those of one device: so many times as large, if all of them are."""
    theirs = held.alone.entries if held.alone else ()
    if close(mine, theirs, held):
        return ""
    ratio = ratio_of(mine, theirs, held)
    if ratio is not None:
        return f"{subject} is {ratio:.3g} times that of one device"
    if len(mine) == 1:
        return f"{subject} is {mine[0]:.4g}, on one device {theirs[0]:.4g}"
    return f"{subject} differs from one device"


def ratio_of(mine: Vector, theirs: Vector, held: Held) -> float | None:
    largest = max(theirs, key=abs, default=0.0)
    if len(mine) != len(theirs) or not abs(largest) > SMALLEST:
        return None
    ratio = mine[theirs.index(largest)] / largest
    scaled = tuple(ratio * each for each in theirs)
    is_plain = ratio == ratio and 0.01 < abs(ratio) < 1000
    return ratio if is_plain and close(mine, scaled, held) else None


def shown_shape(value: Value) -> str:
    return " × ".join(map(str, value.shape)) or "a number"


PICTURED = {"examples", "loss", "gradient", "aggregated", "update"}  # also if nothing differs
ADD_UP = "the parts add up to that of one device, or their mean does where means are taken"
EQUAL = "copies are equal, and as on one device"
TABLE = {
    stage.key: stage
    for stage in (
        Stage("start", "held before", EQUAL, copies_or_parts),
        Stage(
            "examples", "examples", "the parts together are the batch of one device", same_examples
        ),
        Stage("drawn", "random numbers", "replicas draw different ones", are_distinct),
        Stage("loss", "loss", ADD_UP, parts_add_up, True, True),
        Stage("gradient", "gradient", ADD_UP, parts_add_up, True, True),
        Stage("sent", "sent to be aggregated", ADD_UP, parts_add_up, True),
        Stage("aggregated", "aggregated", "the same on all, and as on one device", is_equal, True),
        Stage(
            "update",
            "update",
            "the same for all copies, and as on one device",
            copies_or_parts,
            True,
        ),
        Stage("variable", "variable", EQUAL, copies_or_parts),
        Stage("state", "other state", EQUAL, copies_or_parts),
        Stage("slot", "slot of the optimizer", EQUAL, copies_or_parts),
        Stage("setting", "number of the optimizer", EQUAL, copies_or_parts),
        Stage("counter", "counter of updates", EQUAL, copies_or_parts),
        Stage("random", "state of random numbers", "no two need be equal", nothing_is_said),
        Stage("metric", "metric", ADD_UP, copies_or_parts),
        Stage("returned", "returned", "what it is depends on the program", nothing_is_said),
        Stage("reported", "reported", "as on one device", equals_alone),
        Stage("end", "the end", "the same words as on one device", ends_alike),
    )
}
