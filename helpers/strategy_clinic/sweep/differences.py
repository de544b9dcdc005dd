"""How the values of several replicas differ from those of one device."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np


class Outcome(StrEnum):
    SAME = "same"
    DIFFERS = "differs"
    RAISES = "raises"  # where one device does not
    RAISES_NOT = "raises not"  # where one device raises
    UNAVAILABLE = "unavailable"  # one device raises, too
    HANGS = "hangs"
    CRASHES = "crashes"


DIFFERENT = {
    Outcome.DIFFERS,
    Outcome.RAISES,
    Outcome.RAISES_NOT,
    Outcome.HANGS,
    Outcome.CRASHES,
}


@dataclass(frozen=True)
class Result:
    """The outcome of a cell, which of its values differ, and how they do, in words."""

    outcome: Outcome
    values: list[str] = field(default_factory=list)
    says: str = ""
    size: float | None = (
        None  # of the largest difference, relative to the values; None where they are not finite
    )
    in_turn: bool = False  # one device that takes the parts in turn gives the same
    rounding: float | None = (
        None  # how much one device changes with the last digits of what it begins with
    )
    seconds: float | None = None  # of the processor


@dataclass(frozen=True)
class Raised:
    """A run that raised, with its message in one line."""

    says: str


def compare(found: Any, right: Any, tolerance: float) -> Result:
    """Compares what a run gave, a dictionary of values or Raised, with what is right."""
    if isinstance(right, Raised):
        if isinstance(found, Raised):
            return Result(Outcome.UNAVAILABLE, [], right.says)
        return Result(Outcome.RAISES_NOT, [], f"one device: {right.says}")
    if isinstance(found, Raised):
        return Result(Outcome.RAISES, [], found.says)
    words = {name: difference(found[name], right[name], tolerance) for name in right}
    different = [name for name in words if words[name]]
    if not different:
        return Result(Outcome.SAME)
    says = "; ".join(f"{name} {words[name]}" for name in different)
    size = max(size_of(found[name], right[name]) for name in different)
    labels = [labelled(name, words[name]) for name in different]
    return Result(
        Outcome.DIFFERS, labels, says, float(f"{size:.2g}") if np.isfinite(size) else None
    )


def labelled(name: str, words: str) -> str:
    """Returns the name of a value that differs, with `not finite` where only the replicas' value is that."""
    return f"{name} not finite" if words.startswith(("nan", "inf", "-inf")) else name


def difference(found: Any, right: Any, tolerance: float) -> str:
    """Returns in words how two values differ, for a list those of its arrays that differ most; "" if they are equal."""
    ones, others = arrays(found), arrays(right)
    if len(ones) != len(others):
        return f"are {len(ones)} and not {len(others)}"
    worst, words = 0.0, ""
    for one, other in zip(ones, others):
        if one.shape != other.shape:
            return f"have the shape {one.shape} and not {other.shape}"
        if close(one, other, tolerance):
            continue
        if not np.isfinite(one).all() and np.isfinite(other).all():
            return f"{one[~np.isfinite(one)][0]}, right {largest(other)}"
        at = np.unravel_index(np.argmax(np.nan_to_num(np.abs(one - other), nan=np.inf)), one.shape)
        if not words or abs(one[at] - other[at]) > worst:
            worst, words = abs(one[at] - other[at]), f"{one[at]:.4g}, right {other[at]:.4g}"
    return words


def size_of(found: Any, right: Any) -> float:
    """Returns the largest difference of two values, relative to the largest number of its array, at least to 1."""
    pairs = list(zip(arrays(found), arrays(right)))
    if any(one.shape != other.shape for one, other in pairs):
        return np.inf
    sizes = [np.max(np.abs(one - other), initial=0) / scale(other) for one, other in pairs]
    return float(np.nan_to_num(np.max(sizes, initial=0), nan=np.inf))


def close(one: Any, other: Any, tolerance: float) -> bool:
    """Returns whether two arrays are equal within the tolerance, which is relative to their largest number."""
    return bool(np.allclose(one, other, rtol=0, atol=tolerance * scale(other), equal_nan=True))


def scale(values: Any) -> float:
    return max(1.0, float(np.max(np.abs(values[np.isfinite(values)]), initial=0)))


def largest(values: Any) -> str:
    return f"{values.flat[np.argmax(np.abs(values))]:.4g}" if values.size else "nothing"


def arrays(value: Any) -> list[Any]:
    parts = value if isinstance(value, list) else [value]
    return [np.asarray(part, "float64") for part in parts]
