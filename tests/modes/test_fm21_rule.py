"""The examiner's rule for fm21: a whole batch for each replica."""

import pytest
from recorded import LINE, OTHER, found, modes, run, strategy
from strategy_clinic.observer.events import (
    BatchTaken,
    DatasetBatched,
    DatasetFromFunction,
    ReplicaCountRead,
)

MADE = DatasetFromFunction(LINE)


def batches(replicas, size, *more):
    taken = BatchTaken(LINE, (size,) * replicas)
    return run(strategy(replicas), MADE, taken, *more, devices=replicas)


def test_a_whole_batch_for_each_replica():
    assert modes(batches(1, 8), batches(2, 8, DatasetBatched(OTHER, 8))) == [("fm21", 20)]


def test_a_batch_of_another_size_is_not_blamed():
    others = DatasetBatched(OTHER, 3), DatasetBatched((), 8)
    assert modes(batches(1, 8), batches(2, 8, *others)) == [("fm21", 7)]


def test_a_dataset_without_a_function_for_each_replica():
    taken = [run(strategy(n), BatchTaken(LINE, (8,) * n), devices=n) for n in (1, 2)]
    assert modes(*taken) == []


def test_a_run_in_which_no_batch_was_seen_is_not_compared():
    unseen = run(strategy(4), MADE, devices=4)
    (finding,) = found(batches(1, 8), batches(2, 8), unseen)
    assert str(finding.message).endswith("8 examples on 1 devices and 16 on 2")


def test_a_batch_that_is_divided():
    assert modes(batches(1, 8), batches(2, 4, DatasetBatched(OTHER, 8))) == []


def test_a_program_that_asks_how_many_replicas_there_are_means_it():
    asked = ReplicaCountRead(LINE)
    assert modes(batches(1, 8, asked), batches(2, 8, asked)) == []


@pytest.mark.parametrize(
    "size, location, expected",
    [(8, (*OTHER, *LINE), [("fm21", 20)]), (4, (*OTHER, *LINE), []), (8, OTHER, [])],
    ids=["whole", "divided", "batched somewhere else"],
)
def test_a_batch_that_only_a_traced_loop_takes(size, location, expected):
    """No batch is seen there, but the function that makes the dataset of a replica is."""
    one, two = (8, (*OTHER, *LINE) if location != OTHER else OTHER), (size, location)
    runs = [
        run(strategy(count), MADE, DatasetBatched(at, examples), devices=count)
        for count, (examples, at) in ((1, one), (2, two))
    ]
    assert modes(*runs) == expected


def test_a_batch_of_which_each_process_sees_its_part():
    """Two replicas of which only one is here: a process of two."""
    part = run(strategy(2), MADE, BatchTaken(LINE, (8,)))
    assert (part.processes, batches(2, 8).processes, run().processes) == (2, 1, 1)
    assert modes(batches(1, 8), part) == [("fm21", 7)]
    assert modes(batches(1, 16), part) == []
