"""Checks fm21: a step takes in more examples, or fewer, with every device."""

import itertools
import re

from ...examiner import blame
from ...examiner.divergence import first_divergence
from ...examiner.findings import counted
from ...examiner.history import steps_at_end
from ...examiner.recording import Recording
from ...examiner.rule import (
    Runs,
    Steps,
    compared,
    least_and_most,
    names,
    rule_of_runs,
)
from ...observer.events import (
    DatasetBatched,
    DatasetFromFunction,
    DatasetSharded,
    ExceptionRaised,
    ReplicaCountRead,
    Stack,
)

OTHER_ARGUMENTS = "() takes"
OF_ALL = (
    "batch by the size for all replicas, such as `size * strategy.num_replicas_in_sync`: the strategy divides each batch among "
    "them"
)
NO_FUNCTION = re.compile(
    rf"dataset_fn\(ctx\)[\s\S]*(object is not callable|{re.escape(OTHER_ARGUMENTS)} \d+ positional)"
)


@rule_of_runs("fm21")
def batch_grows(runs: Runs) -> Steps:
    """Checks programs that do not read the number of replicas, and those whose training is the same whatever they read.

    A step that reads it itself may divide by it: then the batch of each replica is chosen, and nothing is said.
    """
    unasked = least_and_most(
        runs.recordings, lambda each: each.examples and not each.of(ReplicaCountRead)
    )
    if unasked:
        yield from growth(*unasked)
    for matched, other in itertools.product(runs.matched, runs.whole[:1]):
        plain = matched.plain
        if plain is None or not plain.trained or matched.examples != plain.examples:
            continue
        if first_divergence(plain, matched) is None and not is_read_in_step(other):
            yield from growth(plain, other)
            return


def is_read_in_step(recording: Recording) -> bool:
    """Tells whether what the program gives to `run` reads the number of replicas."""
    reads = recording.of(ReplicaCountRead)
    return any("run" in blame.called_at(frame) for read in reads for frame in read.location)


def growth(one: Recording, other: Recording) -> Steps:
    """Yields that a step takes in more examples on more replicas, if a function makes their datasets."""
    few, many = one.replicas, other.replicas
    made = other.last(DatasetFromFunction)
    if made is None or not one.examples or one.examples == other.examples:
        return
    message = (
        f"each replica takes a whole batch: a step has {one.examples} examples on {counted(few, 'device')} "
        f"and {other.examples} on {many}"
    )
    inside = [each.location for each in other.batched_in_functions]
    location = blame.from_batches(inside[-1] if inside else made.location)
    yield compared("fm21", (few, many), location, message)


@rule_of_runs("fm21")
def chosen_batch_grows(runs: Runs) -> Steps:
    """Checks whether each replica takes a batch that the program has multiplied by the number of replicas."""
    for one, other in itertools.product(runs.matched, runs.whole[:1]):
        plain, few, many = one.plain, one.replicas, other.replicas
        made = other.last(DatasetFromFunction)
        if made is None or plain is None or one.examples >= other.examples:
            continue
        # The batch has grown with the number that the program reads, and again with the replicas.
        if (
            plain.examples * many == one.examples * few
            and one.examples * many == other.examples * few
        ):
            message = (
                "each replica takes the batch of all: with a batch that is chosen for "
                f"{many} replicas, a step has {one.examples} examples with {few} of them and {other.examples} with {many}"
            )
            yield compared("fm21", (few, many), made.location, message)
            return


@rule_of_runs("fm21")
def batch_of_one_is_divided(runs: Runs) -> Steps:
    """Checks whether the batch of one replica is divided among the replicas once more.

    Either a step has fewer examples, or the steps are counted for batches of all replicas, and there are fewer.
    """
    pair = least_and_most(runs.whole, is_divided)
    if pair is None:
        return
    (one, other), (few, many) = pair, (each.replicas for each in pair)
    batched = [each for each in other.of(DatasetBatched) if each.size == other.examples]
    steps, fewer = (sum(steps_at_end(each)) for each in pair)
    if one.examples * few == other.examples * many:
        shown = f"a step has {one.examples} examples on {counted(few, 'device')} and {other.examples} on {many}"
    elif one.examples == other.examples and 0 < fewer == steps * few // many:
        shown = f"there are {steps} steps of {one.examples} examples on {counted(few, 'device')}, and {fewer} on {many}"
    else:
        return
    if batched and batched[-1].location:
        location = blame.from_batches(batched[-1].location)
        message = f"the batch of one replica is divided among all of them: {shown}"
        yield compared("fm21", (few, many), location, message, fix=OF_ALL)


def is_divided(run: Recording) -> bool:
    """Tells whether a run divides its batches, by a number of replicas that it has read."""
    read = run.of(ReplicaCountRead) and not run.of(DatasetFromFunction)
    return bool(read and run.trained)


@rule_of_runs("fm21")
def part_is_left_out(runs: Runs) -> Steps:
    """Checks whether the examples are divided into a part for each replica, while each process makes one dataset."""
    pair = least_and_most(runs.whole, lambda each: not each.task)
    if pair is None or not pair[1].of(DatasetFromFunction):
        return
    seen, (few, many) = [*map(shards_of, pair)], (each.replicas for each in pair)
    for location, taken in seen[1].items():
        one_of_many = {shards for shards, _ in taken} == {many} and len(taken) < many
        if one_of_many and {shards for shards, _ in seen[0].get(location, ())} == {few}:
            used = f"{len(taken)} of {many} parts"
            message = (
                f"the dataset is divided by the number of replicas, and {used} of its examples are used: "
                "the function is called once for each process, so divide by `context.num_input_pipelines`"
            )
            yield compared("fm21", (few, many), location, message)
            return


def shards_of(recording: Recording) -> dict[Stack, set[tuple[int, int]]]:
    """Returns into how many parts a line divides a dataset, and which of them it takes."""
    found: dict[Stack, set[tuple[int, int]]] = {}
    for each in recording.of(DatasetSharded):
        found.setdefault(each.location, set()).add((each.shards, each.index))
    return found


# Exceptions


@names("fm21")
def no_function(recording: Recording, raised: ExceptionRaised) -> bool:
    return bool(NO_FUNCTION.search(raised.traceback))
