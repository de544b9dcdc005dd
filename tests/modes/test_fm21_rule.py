"""The examiner's rule for fm21: a whole batch for each replica."""

from dataclasses import replace

import pytest
from recorded import LINE, OTHER, ended, found, modes, run, stack, state, strategy, trained, updated
from strategy_clinic.examiner.recording import Role
from strategy_clinic.observer.events import (
    BatchTaken,
    DatasetBatched,
    DatasetFromFunction,
    DatasetSharded,
    ExceptionRaised,
    Outcome,
    ReplicaCountRead,
)

MADE = DatasetFromFunction(LINE)


def without(recording, event):
    return replace(recording, events=tuple(each for each in recording.events if each != event))


def batches(replicas, size, *more):
    taken = BatchTaken(LINE, (size,) * replicas)
    return run(strategy(replicas), MADE, taken, *more, devices=replicas)


def test_a_whole_batch_for_each_replica():
    inside = DatasetBatched((*OTHER, *LINE), 8)
    assert modes(batches(1, 8), batches(2, 8, inside)) == [("fm21", 20)]


@pytest.mark.parametrize("size, line", [("batch_size", 5), ("BATCH", 2)])
def test_a_function_that_is_given_the_size_of_the_batch(tmp_path, size, line):
    path = tmp_path / "train.py"
    path.write_text(
        f"def make(data, batch_size):\n    data = data.batch({size})\n    return data\n\n"
        "function = lambda context: make(DATA, 8)\n"
    )
    inside = DatasetBatched((*stack(path, 2, 5), *LINE), 8)
    assert modes(batches(1, 8), batches(2, 8, inside)) == [("fm21", line)]


def test_a_size_that_the_function_computes_is_blamed_where_it_does(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(
        "def make(context):\n    size = WHOLE // context.num_input_pipelines\n"
        "    return DATA.batch(size)\n"
    )
    inside = DatasetBatched((*stack(path, 3), *LINE), 8)
    assert modes(batches(1, 8), batches(2, 8, inside)) == [("fm21", 2)]


def test_a_batch_on_no_line_or_of_another_dataset_is_not_blamed():
    others = DatasetBatched((), 8), DatasetBatched(OTHER, 8)
    assert modes(batches(1, 8), batches(2, 8, *others)) == [("fm21", 7)]


def test_parts_of_one_batch_whose_first_dimension_is_time():
    place = (*OTHER, *LINE)
    assert (
        modes(batches(1, 6, DatasetBatched(place, 8)), batches(2, 6, DatasetBatched(place, 4)))
        == []
    )


def test_a_batch_whose_first_dimension_is_time():
    place = (*OTHER, *LINE)
    (finding,) = found(
        batches(1, 6, DatasetBatched(place, 8)), batches(2, 6, DatasetBatched(place, 8))
    )
    assert finding.line == 20
    assert str(finding.message).endswith("8 examples on 1 device and 16 on 2")


def test_a_dataset_without_a_function_for_each_replica():
    taken = [run(strategy(n), BatchTaken(LINE, (8,) * n), devices=n) for n in (1, 2)]
    assert modes(*taken) == []


def test_a_run_in_which_no_batch_was_seen_is_not_compared():
    unseen = run(strategy(4), MADE, devices=4)
    (finding,) = found(batches(1, 8), batches(2, 8), unseen)
    assert str(finding.message).endswith("8 examples on 1 device and 16 on 2")


def test_a_batch_that_is_divided():
    assert modes(batches(1, 8), batches(2, 4, DatasetBatched(OTHER, 8))) == []


def test_a_program_that_asks_how_many_replicas_there_are_means_it():
    asked = ReplicaCountRead(LINE)
    assert modes(batches(1, 8, asked), batches(2, 8, asked)) == []


@pytest.mark.parametrize(
    "plain, matched, expected",
    [(4, 8, [("fm21", 7)]), (4, 4, []), (8, 8, [])],
    ids=["the batch of all", "the batch of one", "a batch that nobody chose"],
)
def test_a_batch_that_is_multiplied_by_the_number_and_taken_by_each(plain, matched, expected):
    asked = ReplicaCountRead(LINE)
    one, other = batches(1, plain, asked), batches(2, 8, asked)
    run_with_batches_of_two = replace(batches(1, matched, asked), role=Role.MATCHED, plain=one)
    assert modes(other, one, run_with_batches_of_two) == expected


@pytest.mark.parametrize(
    "value, in_step, expected",
    [(0.9, False, [("fm21", 7)]), (0.8, False, []), (0.9, True, [])],
    ids=["for its words only", "for its training", "in the step"],
)
def test_a_program_that_reads_the_number(value, in_step, expected, tmp_path):
    """Each replica takes a whole batch, though nothing on one device changes with the number that the program reads."""
    path = tmp_path / "train.py"
    path.write_text("strategy.run(step)\n")
    asked, made = ReplicaCountRead(stack(path, 1) if in_step else LINE), DatasetFromFunction(LINE)
    one, other = (trained(0.9, asked, made, BatchTaken(LINE, (4,) * n), devices=n) for n in (1, 2))
    again = trained(value, asked, made, BatchTaken(LINE, (4,)), devices=1)
    matched = replace(again, role=Role.MATCHED, plain=one)
    assert modes(other, one, matched) == expected


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
    part = run(strategy(2), MADE, BatchTaken(LINE, (8,)), task="worker 0")
    assert (part.processes, batches(2, 8).processes, run().processes) == (2, 1, 1)
    assert modes(batches(1, 8), part) == [("fm21", 7)]
    assert modes(batches(1, 16), part) == []


# The batch of one replica that is divided again

COUNTED, TRAINS = ReplicaCountRead(LINE), updated(trains=(1,))


def shrinking(replicas, size, *more):
    """A run that takes batches of this size over all replicas, and has counted these."""
    taken = BatchTaken(LINE, (size // replicas,) * replicas)
    events = [strategy(replicas), COUNTED, DatasetBatched(OTHER, size), taken, TRAINS, *more]
    return run(*events, devices=replicas)


@pytest.mark.parametrize("replicas", [2, 4])
def test_the_batch_of_one_replica_that_is_divided_again(replicas):
    assert modes(shrinking(1, 16), shrinking(replicas, 16 // replicas)) == [("fm21", 20)]


def making(steps, recording):
    return replace(recording, events=(*recording.events, ended(optimizers=(state(steps=steps),))))


@pytest.mark.parametrize(
    "steps, fewer, size, expected",
    [
        (24, 12, 8, [("fm21", 20)]),
        (25, 12, 8, [("fm21", 20)]),
        (24, 24, 8, []),
        (24, 10, 8, []),
        (24, 12, 16, []),
        (0, 0, 8, []),
    ],
    ids=["half", "rounded", "as many", "another number", "of larger batches", "none"],
)
def test_steps_that_are_counted_for_larger_batches(steps, fewer, size, expected):
    one, other = making(steps, shrinking(1, 8)), making(fewer, shrinking(2, size))
    assert modes(one, other) == expected


BATCHED = """\
def rows(batch):
    return data.batch(batch)
def own():
    share = BATCH // replicas
    return data.batch(share)
model.fit(rows(BATCH // replicas))
"""


@pytest.mark.parametrize("lines, line", [((2, 6), 6), ((5, 6), 4)], ids=["given", "assigned"])
def test_the_line_that_divides_the_batch_is_blamed(tmp_path, lines, line):
    path = tmp_path / "train.py"
    path.write_text(BATCHED)
    made = DatasetBatched(stack(path, *lines), 8)
    other = without(shrinking(2, 8, made), DatasetBatched(OTHER, 8))
    assert modes(shrinking(1, 16), other) == [("fm21", line)]


@pytest.mark.parametrize(
    "one, other",
    [
        (shrinking(1, 16), shrinking(2, 16)),
        (shrinking(1, 16), shrinking(2, 12)),
        (shrinking(1, 16, MADE), shrinking(2, 8, MADE)),
        (shrinking(1, 16), without(shrinking(2, 8), COUNTED)),
        (shrinking(1, 16), without(shrinking(2, 8), DatasetBatched(OTHER, 8))),
        (shrinking(1, 16), without(shrinking(2, 8), TRAINS)),
        (shrinking(1, 16), replace(shrinking(2, 8), role=Role.TASK)),
    ],
    ids=[
        "the same",
        "in between",
        "by a function",
        "not counted",
        "batched elsewhere",
        "no training",
        "one task of several",
    ],
)
def test_a_batch_that_is_smaller_for_a_reason(one, other):
    assert modes(one, other) == []


# Exceptions

FUNCTION = """\
def make(context):
    return [dataset]

for batch in strategy.distribute_datasets_from_function(make):
    pass
"""
CALLED_WITH = "input_lib.py\n    dataset = dataset_fn(ctx)\n"


@pytest.mark.parametrize(
    "text",
    [
        "AttributeError: 'list' object has no attribute 'element_spec'",
        "AttributeError: 'OwnedIterator' object has no attribute '_variant_tensor'",
        f"{CALLED_WITH}TypeError: make() takes 0 positional arguments but 1 was given",
        f"{CALLED_WITH}TypeError: '_BatchDataset' object is not callable",
    ],
    ids=["no dataset", "an iterator", "no context", "no function"],
)
def test_an_exception_about_a_function_for_datasets(tmp_path, text):
    path = tmp_path / "train.py"
    path.write_text(FUNCTION)
    frames = "Traceback (most recent call last):\n  in distribute_datasets_from_function\n"
    error = ExceptionRaised(stack(path, 4), text.rpartition("\n")[2], f"{frames}{text}", ())
    assert modes(run(strategy(), error, outcome=Outcome.RAISED)) == [("fm21", 4)]


METHOD = """\
class Feed:
    def make(self):
        return dataset

    def batches(self):
        return strategy.distribute_datasets_from_function(self.make)
"""


def test_a_method_that_takes_no_context(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(METHOD)
    error = "TypeError: Feed.make() takes 1 positional argument but 2 were given"
    text = f"Traceback (most recent call last):\n{CALLED_WITH}{error}"
    raised = ExceptionRaised(stack(path, 6), "TypeError", text, ())
    assert modes(run(strategy(), raised, outcome=Outcome.RAISED)) == [("fm21", 6)]


# Parts of the dataset


def sharded(replicas, *parts, **fields):
    """A run whose function takes these parts of the examples."""
    shards = [DatasetSharded(OTHER, count, index) for count, index in parts]
    events = [strategy(replicas), updated(), *([] if "without" in fields else [MADE]), *shards]
    role = Role.WATCHED if replicas > 1 else Role.COMPARED
    return run(*events, devices=replicas, role=role, task=fields.get("task", ""))


def test_a_part_for_each_replica_of_which_one_is_taken():
    (finding,) = found(sharded(2, (2, 0)), sharded(1, (1, 0)))
    assert (finding.mode, finding.line) == ("fm21", 20)
    assert "1 of 2 parts of its examples are used" in str(finding.message)
    assert "`context.num_input_pipelines`" in str(finding.message)


@pytest.mark.parametrize(
    "many, few",
    [
        (sharded(2, (1, 0)), sharded(1, (1, 0))),
        (sharded(2, (2, 0), (2, 1)), sharded(1, (1, 0))),
        (sharded(2, (2, 0)), sharded(1, (2, 0))),
        (sharded(2, (2, 0), without=True), sharded(1, (1, 0), without=True)),
        (sharded(2, (2, 0), task="worker 0"), sharded(1, (1, 0))),
        (sharded(2, (2, 0)), sharded(2, (2, 0))),
    ],
    ids=[
        "a part for each process",
        "all parts",
        "a part for validation",
        "no function",
        "one of several processes",
        "one number of replicas",
    ],
)
def test_parts_of_a_dataset_that_are_right(many, few):
    assert modes(many, few) == []
