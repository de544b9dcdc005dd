"""The examiner's rule for fm63: a generator that runs all the time, and is never ahead of the steps."""

from dataclasses import replace

import pytest
from recorded import LINE, found, modes, run, strategy
from strategy_clinic.observer.events import BatchTaken, DatasetBatched, GeneratorRead

# Sixteen examples in a step; the generator gives one example after the other.
READ = GeneratorRead(LINE, elements=320, steps=20, seconds=2.0, share=0.97, at_once=1)


def trained(read):
    return run(strategy(), BatchTaken(LINE, (8, 8)), read)


def test_a_generator_that_is_never_ahead():
    (finding,) = found(trained(READ))
    assert (finding.mode, finding.line) == ("fm63", 7)
    assert "97% of the time of 20 steps" in str(finding.proof)


def test_a_generator_of_batches():
    assert modes(trained(replace(READ, elements=21))) == [("fm63", 7)]


def test_a_batch_whose_size_only_the_dataset_knows():
    assert modes(run(strategy(), DatasetBatched(LINE, 16), READ)) == [("fm63", 7)]
    assert modes(run(strategy(), DatasetBatched(LINE, 64), READ)) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"elements": 400},
        {"elements": 35},
        {"elements": 60},
        {"steps": 9, "elements": 144},
        {"seconds": 0.4},
        {"share": 0.7},
        {"at_once": 2},
        {"location": ()},
    ],
    ids=[
        "ahead",
        "batches ahead",
        "more batches ahead",
        "few steps",
        "fast",
        "idle",
        "parallel",
        "no line",
    ],
)
def test_near_misses(changes):
    assert modes(trained(replace(READ, **changes))) == []
