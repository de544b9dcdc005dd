"""Checks fm19: a mean over replicas that had different numbers of examples."""

import re

from ...examiner.findings import FollowUp, ShowMeans
from ...examiner.mean_of_batches import mean_of_batches
from ...examiner.printed import is_through_last_batch, printed_difference, source_of
from ...examiner.recording import Recording, Role
from ...examiner.rule import Runs, Steps, compared, observed, reclassify, rule, rule_of_runs
from ...examiner.suspects import Side, Suspect, begins_late, gradient_line, is_fit
from ...observer.events import BatchTaken, ExceptionRaised, MeanReduced, Stack
from ...observer.replacements import Replacement

SAME = 1e-6  # relative
ASSIGNMENT = re.compile(r"Assign(Sub|Add)?VariableOp")


@rule("fm19")
def mean_of_means(recording: Recording) -> Steps:
    means = recording.of(MeanReduced)
    if is_hidden_in_graph(recording, means):
        shown = yield FollowUp(
            recording, ShowMeans(), "with the numbers told that are reduced in graphs"
        )
        means += shown.of(MeanReduced) if shown else []
    for mean in means:
        if mean.values and mean.location:
            plain = sum(mean.values) / len(mean.values)
            right = mean_of_examples(mean)
            if not abs(plain - right) <= SAME * (
                1 + abs(right)
            ):  # `not`, since NaN is no number that is near
                sizes = " and ".join(map(str, mean.sizes))
                message = f"a mean of means: the replicas had {sizes} examples, and count the same"
                proof = f"it is {plain:.6g}, and {right:.6g} if every example counts the same"
                yield observed("fm19", recording, mean.location, message, proof)


@rule_of_runs("fm19", last=True)
def printed_mean_of_means(runs: Runs) -> Steps:
    difference = yield from printed_difference(runs)
    if difference and not difference.is_by_replicas and (yield from is_through_last_batch(runs)):
        location = source_of(difference)
        if location:
            message = f"{difference}: each replica's mean of a smaller last batch counts the same"
            yield compared("fm19", difference.counts, location, message)


@rule("fm19", explains_divergence=False)
def mean_of_unequal_batches(recording: Recording) -> Steps:
    """Checks for a number that is printed as the plain mean of those of batches of several sizes."""
    shown = mean_of_batches(recording)
    if shown and recording.role is Role.WATCHED:
        sizes = " and ".join(map(str, shown.sizes))
        message = f"a mean of means: batches of {sizes} examples count the same"
        proof = f"{shown.printed}, which is printed, follows from the plain mean of the numbers of {shown.batches} batches"
        yield observed("fm19", recording, shown.location, message, proof)


last_batch = Suspect(
    Replacement.FULL_BATCHES,
    "without a smaller last batch",
    Side.PROGRAM,
    lambda divergence: not is_fit(divergence) and begins_late(divergence),
    "the last batch does not divide evenly, and each replica divides by the examples that it has",
    "divide by the examples of the whole batch, or `drop_remainder=True`",
    gradient_line,
    mode="fm19",
    last=True,
)


def is_hidden_in_graph(recording: Recording, means: list[MeanReduced]) -> bool:
    """Tells whether a mean was computed where its numbers cannot be seen, and batches were divided unevenly."""
    uneven = any(len(set(batch.sizes)) > 1 for batch in recording.of(BatchTaken))
    return uneven and any(not mean.values for mean in means)


def mean_of_examples(mean: MeanReduced) -> float:
    total = sum(size * value for size, value in zip(mean.sizes, mean.values) if size)
    return total / max(1, sum(mean.sizes))


@reclassify("fm19")
def unless_by_optimizer(
    run: Recording, mode: str, raised: ExceptionRaised, stack: Stack
) -> str | None:
    """An update of another shape than its variable is no matter of how many examples there are."""
    is_update = ASSIGNMENT.search(raised.traceback) and "/optimizers/" in raised.traceback
    return None if is_update else mode
