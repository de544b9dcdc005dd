"""A printed number that is the plain mean of the numbers of several batches."""

import pytest
from recorded import LINE, OTHER, run
from strategy_clinic.examiner.mean_of_batches import mean_of_batches
from strategy_clinic.observer.events import BatchTaken, MeanReduced, NumbersRead

STEP = (LINE[0]._replace(line=3), *OTHER)
NUMBERS = (0.9137, 0.7211, 0.4519, 0.8126, 0.6035, 0.3742)  # two passes of three batches
OUTPUT = "epoch 1: error 0.69557\nepoch 2: error 0.59677\n"


def batches(*sizes):
    return [BatchTaken(LINE, (size, size)) for size in sizes]


def read(numbers=NUMBERS, location=OTHER):
    return NumbersRead(location, len(numbers), numbers, ())


MEAN = MeanReduced(STEP, (), ())


@pytest.mark.parametrize(
    "events, output, number",
    [
        ([*batches(8, 3), MEAN, read()], OUTPUT, "0.69557"),
        # With another number that is read of each batch
        (
            [*batches(8, 3), MEAN, read(tuple(n for each in NUMBERS for n in (each, 8.0)))],
            OUTPUT,
            "0.69557",
        ),
        ([*batches(8), MEAN, read()], OUTPUT, None),  # batches of one size
        ([*batches(8, 3), read()], OUTPUT, None),  # no mean over replicas
        ([*batches(8, 3), MEAN, read(location=LINE)], OUTPUT, None),  # of something else
        ([*batches(8, 3), MEAN, read()], "error 0.68121\nerror 0.58020\n", None),  # another mean
        ([*batches(8, 3), MEAN, read()], "error 0.69557\n", None),  # by chance, maybe
        ([*batches(8, 3), MEAN, read()], "error 0.7\nerror 0.6\n", None),  # too few digits
    ],
)
def test_a_mean_of_means_is_told_by_its_value(events, output, number):
    found = mean_of_batches(run(*events, output=output))
    assert (found and found.printed) == number
    assert not found or (found.location, found.batches, found.sizes) == (STEP, 3, (16, 6))
