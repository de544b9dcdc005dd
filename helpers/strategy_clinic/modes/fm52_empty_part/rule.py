"""Checks fm52: weights turn NaN on several devices, and not without a smaller last batch."""

from dataclasses import replace

from ...examiner.divergence import is_finite
from ...examiner.findings import FollowUp, Replace
from ...examiner.recording import Recording
from ...examiner.rule import Runs, Steps, compared, rule_of_runs
from ...examiner.suspects import RIGHT
from ...observer.events import DatasetBatched, GradientComputed, Part, PartUsed, Stack
from ...observer.replacements import Replacement

FULL_BATCHES = Replace(frozenset({Replacement.FULL_BATCHES}))


@rule_of_runs("fm52")
def empty_part(runs: Runs) -> Steps:
    finite = [each for each in runs.whole if each.finished and each.trained and is_finite(each)]
    for other in runs.whole:
        fewer = [each for each in finite if each.replicas < other.replicas]
        if not (fewer and other.finished) or is_finite(other):
            continue
        full = yield FollowUp(other, FULL_BATCHES, "without a smaller last batch")
        if full is not None and full.finished and full.trained and is_finite(full):
            of_keras = normalizes(other)
            message = "weights turn NaN: a replica gets no example of the last batch, and " + (
                f"BatchNormalization of Keras 3 has NaN gradients for an empty part{RIGHT}"
                if of_keras
                else "the program divides by the number of its examples"
            )
            devices = fewer[0].devices, other.devices
            found = compared("fm52", devices, batch_line(other), message)
            yield replace(found, by_framework=of_keras)
            return


def normalizes(recording: Recording) -> bool:
    return any(each.part is Part.BATCH_STATISTICS for each in recording.of(PartUsed))


def batch_line(recording: Recording) -> Stack:
    """Returns the line that makes batches, or else the one that computes gradients."""
    lines = [*recording.of(DatasetBatched), *recording.of(GradientComputed)]
    return next((each.location for each in lines if each.location), ())
