"""Checks fm52: on several devices weights or reports turn NaN, or oneDNN fails, and not without a smaller last batch."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from ...examiner.blame import calls_at
from ...examiner.divergence import is_finite
from ...examiner.findings import (
    FULL_BATCHES,
    Evidence,
    Finding,
    FollowUp,
    Location,
    Text,
    counted,
    with_full_batches,
)
from ...examiner.hangs import ended_at
from ...examiner.recording import Recording, first_line, stack_of
from ...examiner.rule import Runs, Steps, advises, compared, names, rule_of_runs
from ...examiner.suspects import RIGHT
from ...observer.events import (
    BatchTaken,
    DatasetBatched,
    ExceptionRaised,
    GradientComputed,
    MetricsReported,
    Part,
    Stack,
    StepEnded,
)

AS_MANY = "give `predict` batches of as many examples as there are replicas, or more; or call the model: `model(x)`"
NO_NAN = (
    "train with whole batches: `batch(..., drop_remainder=True)` of a dataset, or as many examples as fill the batches; or let "
    "the loss and the metrics be 0 for no examples, with `tf.math.divide_no_nan`"
)
WITH_ONEDNN = replace(FULL_BATCHES, onednn=True)


@rule_of_runs("fm52")
def empty_part_in_onednn(runs: Runs) -> Steps:
    for run in runs.whole:
        if (failed := run.with_onednn) is None:
            continue
        full = yield FollowUp(run, WITH_ONEDNN, "with oneDNN, without a smaller last batch")
        if full is not None and full.finished and full.trained:
            yield failure_of_onednn(run, failed, failed.last(ExceptionRaised))


def failure_of_onednn(run: Recording, failed: Recording, raised: ExceptionRaised | None) -> Finding:
    error, does = (raised.error, "returns a wrong shape") if raised else ("SIGABRT", "aborts")
    message = (
        "it fails: a replica gets no example of the last batch, and an operation of oneDNN, which TensorFlow "
        f"uses on CPUs, {does} for an empty part{RIGHT}"
    )
    proof = (
        f"raised {error} on {counted(run.devices, 'device')} with oneDNN; "
        "finishes without oneDNN, and with it without a smaller last batch"
    )
    line = Location(batch_line(run) or (stack_of(raised) if raised else ended_at(failed)))
    words = Text(message), Text(proof)
    return Finding("fm52", line, Evidence.RAISED, *words, (run.devices,), by_framework=True)


@rule_of_runs("fm52")
def empty_part(runs: Runs) -> Steps:
    for one, other in worse_on_more(runs, is_finite, lambda each: not is_finite(each)):
        full = yield with_full_batches(other)
        if full is not None and full.finished and full.trained and is_finite(full):
            of_keras = other.uses(Part.BATCH_STATISTICS)
            message = "weights turn NaN: a replica gets no example of the last batch, and " + (
                f"BatchNormalization of Keras 3 has NaN gradients for an empty part{RIGHT}"
                if of_keras
                else "the program divides by the number of its examples"
            )
            devices, line = (one.devices, other.devices), batch_line(other)
            yield compared("fm52", devices, line, message, by_framework=of_keras)
            return


@rule_of_runs("fm52")
def nothing_to_average(runs: Runs) -> Steps:
    """Checks for what `fit` reports, where the weights stay numbers: no gradient comes from a part without examples."""
    for one, other in worse_on_more(runs, reports_numbers, reports_nan):
        full = yield with_full_batches(other)
        if full is not None and full.finished and reports_numbers(full):
            message = "`fit` reports nan: a replica gets no example of the last batch, of which its loss or metric is the mean"
            devices = one.devices, other.devices
            yield compared("fm52", devices, batch_line(other), message, fix=NO_NAN)
            return


def worse_on_more(
    runs: Runs, is_right: Callable[[Recording], bool], is_wrong: Callable[[Recording], bool]
) -> Iterator[tuple[Recording, Recording]]:
    """Yields the runs that are wrong, each after one on fewer replicas that is right."""
    right = [each for each in runs.whole if each.finished and is_right(each)]
    for other in filter(is_wrong, runs.whole):
        fewer = [each for each in right if each.replicas < other.replicas]
        yield from [(one, other) for one in fewer[:1]]


def reports_nan(recording: Recording) -> bool:
    """Tells whether a run reports what is no number, and its weights are numbers."""
    is_trained = recording.finished and is_finite(recording)
    return is_trained and not all(map(are_numbers, recording.of(MetricsReported)))


def reports_numbers(recording: Recording) -> bool:
    reported = recording.of(MetricsReported)
    return bool(reported) and all(map(are_numbers, reported))


def are_numbers(reported: MetricsReported) -> bool:
    return all(math.isfinite(each.value) for each in reported.metrics)


def batch_line(recording: Recording) -> Stack:
    """Returns the line that makes batches, or else the one that computes gradients."""
    return first_line([*recording.of(DatasetBatched), *recording.of(GradientComputed)])


@advises("fm52")
def of_predictions(_: Recording, stack: Stack) -> str:
    return AS_MANY if calls_at(stack, "predict") else ""


@names("fm52")
def raised_with_an_empty_part(run: Recording, raised: ExceptionRaised) -> bool:
    """Tells whether steps have ended well before this was raised, and a replica has got no example of the batch after them."""
    last = run.of(BatchTaken, until=raised)[-1:]
    return any(0 in each.sizes and run.of(StepEnded, until=each) for each in last)
