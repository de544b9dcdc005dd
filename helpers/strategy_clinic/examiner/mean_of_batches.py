"""Finds a reported number that is the plain mean of numbers read batch by batch, though the batches differ in size."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..observer.events import BatchTaken, DatasetBatched, MeanReduced, NumbersRead, Stack
from .blame import in_one_loop
from .printed import NUMBER, lines_by_text, significant_digits, unit
from .recording import Recording

FEWEST_DIGITS = 4  # of a printed number that is compared
# Of the numbers that agree, one for each pass over the data: fewer may do so by chance.
ENOUGH_DIGITS = 10
COMPREHENSIONS = "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"
MOST_COLUMNS, MOST_BATCHES = 4, 12  # read of each batch in turn, and of one pass over the data
# What is printed of a mean: itself, its root as of squared errors, or its exponential as a perplexity.
RESULTS = float, lambda mean: math.sqrt(abs(mean)), lambda mean: math.exp(min(mean, 99.0))


@dataclass(frozen=True)
class MeanOfBatches:
    location: Stack  # of the mean over replicas
    printed: str
    batches: int
    sizes: tuple[int, ...]  # of batches, the largest first


def mean_of_batches(recording: Recording) -> MeanOfBatches | None:
    sizes = {sum(taken.sizes) for taken in recording.of(BatchTaken)}
    smaller = smaller_batches(recording) if len(sizes) > 1 else []
    printed = Printed(printed_numbers(recording.output) if smaller else ())
    for mean in recording.of(MeanReduced):
        for read in recording.of(NumbersRead) if printed.by_unit else ():
            line = without_comprehensions(read.location)
            is_of_mean = any(in_one_loop(line, each) for each in ends_of(mean.location))
            is_of_smaller = any(in_one_loop(each, at) for each in ends_of(line) for at in smaller)
            both = is_of_mean and is_of_smaller
            for number, batches in means_printed(read.numbers, printed) if both else ():
                ordered = tuple(sorted(sizes, reverse=True))
                return MeanOfBatches(mean.location, number, batches, ordered)
    return None


def smaller_batches(recording: Recording) -> list[Stack]:
    """Returns where batches are taken that have another size than the program gives its batches, of a replica or of all."""
    made = {each.size for each in recording.of(DatasetBatched)}
    taken = [each for each in recording.of(BatchTaken) if not made & {sum(each.sizes), *each.sizes}]
    return [without_comprehensions(each.location) for each in taken]


def ends_of(stack: Stack) -> list[Stack]:
    """Returns the frames of a stack from each of them on."""
    return [stack[i:] for i in range(len(stack))]


def without_comprehensions(stack: Stack) -> Stack:
    """Returns the frames from the function on; up to Python 3.11 a comprehension has one of its own."""
    return tuple(itertools.dropwhile(lambda frame: frame.function in COMPREHENSIONS, stack))


def printed_numbers(output: str) -> Iterator[str]:
    for lines in lines_by_text(output).values():
        for line in lines:
            yield from (n for n in NUMBER.findall(line) if significant_digits(n) >= FEWEST_DIGITS)


class Printed:
    """Printed numbers, in the order of their size, by what their last digits count."""

    def __init__(self, numbers: Iterable[str]) -> None:
        self.by_unit: dict[float, list[tuple[float, int, str]]] = {}
        for place, number in enumerate(dict.fromkeys(numbers)):
            self.by_unit.setdefault(unit(number), []).append((float(number), place, number))
        for each in self.by_unit.values():
            each.sort()

    def first(self, value: float) -> str:
        """Returns what is printed first of the numbers that a value may be printed as; nothing if there is none."""
        found = [
            (place, text)
            for size, numbers in self.by_unit.items()
            for number, place, text in near(numbers, value, size)
            if abs(number - value) <= 0.51 * size
        ]
        return min(found, default=(0, ""))[1]


def near(
    numbers: Sequence[tuple[float, int, str]], value: float, size: float
) -> Sequence[tuple[float, int, str]]:
    return numbers[bisect_left(numbers, (value - size,)) : bisect_right(numbers, (value + size,))]


def means_printed(numbers: Sequence[float], printed: Printed) -> Iterator[tuple[str, int]]:
    """Yields a printed number that follows from the mean over a pass, if enough of the next passes are printed so, too."""
    for columns in range(1, MOST_COLUMNS + 1):
        for column, result in itertools.product(range(columns), RESULTS):
            values = numbers[column::columns]
            for batches in range(2, min(MOST_BATCHES, len(values) // 2) + 1):
                passes = (values[i : i + batches] for i in range(0, len(values), batches))
                means = (printed.first(result(sum(each) / batches)) for each in passes)
                for _, group in itertools.groupby(means, bool):
                    found = dict.fromkeys(group)
                    if enough(found):
                        yield next(iter(found)), batches


def enough(printed: Collection[str]) -> bool:
    return len(printed) > 1 and sum(map(significant_digits, printed)) >= ENOUGH_DIGITS
