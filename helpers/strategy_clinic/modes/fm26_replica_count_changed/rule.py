"""Checks fm26: trained on with more examples in each step than before it was saved, since there are more replicas."""

from collections.abc import Iterator

from ...examiner.blame import from_batches, from_choice
from ...examiner.findings import Note, counted
from ...examiner.history import updates_of
from ...examiner.recording import Recording
from ...examiner.restarts import rate_of
from ...examiner.rule import Runs, Steps, least_and_most, observed, rule, rule_of_runs
from ...observer.events import (
    DatasetBatched,
    DatasetFromFunction,
    GradientsApplied,
    LearningRateWritten,
    Loaded,
    ModelCalled,
    ReplicaCountRead,
    Saved,
    Stack,
)


@rule("fm26")
def larger_batch_after_loading(recording: Recording) -> Steps:
    for then, now in calls_before_and_after(recording):
        grows = now.examples == then.examples and now.replicas > then.replicas
        if grows and now.location and updates_of(recording, now.variables, after=now):
            larger, smaller = (call.examples * call.replicas for call in (now, then))
            yield observed(
                "fm26",
                recording,
                batched_at(recording, now, larger) or from_choice(now.location),
                f"a step takes in {larger} examples on {now.replicas} replicas, and {smaller} before it was saved",
                f"each replica gets {now.examples}, as before",
            )
            return


def batched_at(recording: Recording, call: ModelCalled, size: int) -> Stack:
    """Returns the line that decides about the last batches of this size before a call."""
    made = [each.location for each in recording.of(DatasetBatched, until=call) if each.size == size]
    return from_batches(made[-1]) if made else ()


@rule_of_runs("fm26")
def batch_grows_alone(runs: Runs) -> Steps:
    """Notes that the program enlarges its batch with every device, and leaves its learning rate: that may be meant."""
    pair = least_and_most(runs.whole, lambda each: each.of(ReplicaCountRead))
    if pair is None:
        return
    (one, other), (few, many) = pair, (each.replicas for each in pair)
    is_chosen = any(each.plain and each.examples == other.examples for each in runs.matched)
    if other.of(DatasetFromFunction) and not is_chosen:
        return  # the batches of replicas, which fm21 judges
    grows = one.examples * many == other.examples * few > 0
    rates, others = rates_of(one), rates_of(other)
    if grows and are_alike(rates, others):
        is_known = bool(rates) and all(isinstance(each, float) for each in rates)
        yield Note(
            f"a step takes in {one.examples} examples on {counted(few, 'replica')} and {other.examples} on {many}"
            + ", with the same learning rate" * is_known
            + ": a training that is continued on more devices becomes another one"
            + " if its learning rate does not follow" * (not is_known)
            + " (fm26)"
        )


def rates_of(run: Recording) -> set[float | str]:
    """Returns the learning rates with which optimizers begin, and those that are set later; of a schedule what is known of it."""
    begun = [each.optimizer for each in run.of(GradientsApplied)]
    known = [(rate_of(each), each.learning_rate) for each in begun]
    written = {each.value for each in run.of(LearningRateWritten)}
    return written | {name if rate is None else rate for rate, name in known}


def are_alike(rates: set[float | str], others: set[float | str]) -> bool:
    """Tells whether runs have the same rates, or one of them has lower ones besides: a callback lowers it by what it sees."""
    common, apart = rates & others, rates ^ others
    numbers = [each for each in apart if isinstance(each, float)]
    least = min((each for each in common if isinstance(each, float)), default=0.0)
    return len(numbers) == len(apart) and max(numbers, default=-1.0) < least


def calls_before_and_after(recording: Recording) -> Iterator[tuple[ModelCalled, ModelCalled]]:
    """Yields pairs: the last call of what was saved, before a save, and a call of any model after that file was loaded."""
    for save in recording.of(Saved):
        calls = recording.of(ModelCalled, until=save)
        before = [call for call in calls if set(call.variables) & set(save.variables)]
        loads = [load for load in recording.of(Loaded, after=save) if load.path == save.path]
        if before and loads:
            yield from ((before[-1], after) for after in recording.of(ModelCalled, after=loads[0]))
