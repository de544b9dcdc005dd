"""Finds a reported number that is the plain mean of numbers read batch by batch, though the batches differ in size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..observer.events import BatchTaken, MeanReduced, NumbersRead, Stack
from .printed import NUMBER, lines_by_text, significant_digits, unit
from .recording import Recording

FEWEST_DIGITS = 5  # of a printed number: fewer may agree by chance
MOST_COLUMNS, MOST_BATCHES = (
    4,
    12,
)  # that are read of each batch in turn, and of one pass over the data


@dataclass(frozen=True)
class MeanOfBatches:
    location: Stack  # of the mean over replicas
    printed: str
    batches: int
    sizes: tuple[int, ...]  # of batches, the largest first


def mean_of_batches(recording: Recording) -> MeanOfBatches | None:
    sizes = sorted({sum(taken.sizes) for taken in recording.of(BatchTaken)}, reverse=True)
    if len(sizes) < 2:
        return None
    printed = [*printed_numbers(recording.output)]
    for mean in recording.of(MeanReduced):
        lines = {frame[:2] for frame in mean.location}
        for read in recording.of(NumbersRead):
            if read.location[0][:2] not in lines:
                continue
            for number, batches in means_printed(read.numbers, printed):
                return MeanOfBatches(mean.location, number, batches, tuple(sizes))
    return None


def printed_numbers(output: str) -> Iterator[str]:
    for lines in lines_by_text(output).values():
        for line in lines:
            yield from (n for n in NUMBER.findall(line) if significant_digits(n) >= FEWEST_DIGITS)


def means_printed(numbers: Sequence[float], printed: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yields a printed number that is the mean over the first pass, if that over the second pass is printed, too."""
    for columns in range(1, MOST_COLUMNS + 1):
        for column in range(columns):
            values = numbers[column::columns]
            for batches in range(2, min(MOST_BATCHES, len(values) // 2) + 1):
                first, second = (
                    printed_as(sum(values[i : i + batches]) / batches, printed)
                    for i in (0, batches)
                )
                if first and second and first != second:
                    yield first, batches


def printed_as(value: float, printed: Sequence[str]) -> str:
    return next((each for each in printed if abs(float(each) - value) <= 0.51 * unit(each)), "")
