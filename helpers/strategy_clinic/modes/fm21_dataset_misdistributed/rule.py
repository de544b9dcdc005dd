"""Checks fm21: a step takes in more examples with every device, and the program never asks how many devices there are."""

from collections.abc import Iterator

from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import Runs, compared, rule_of_runs
from ...observer.events import BatchTaken, DatasetBatched, DatasetFromFunction, ReplicaCountRead


@rule_of_runs("fm21")
def batch_grows(runs: Runs) -> Iterator[Finding]:
    asked = [recording for recording in runs.recordings if recording.of(ReplicaCountRead)]
    by_count = {
        each.replicas: each for each in runs.recordings if batch_of(each) and each not in asked
    }
    few, many = min(by_count, default=1), max(by_count, default=1)
    made = by_count[many].last(DatasetFromFunction) if few < many else None
    if made is None:
        return
    one, other = batch_of(by_count[few]), batch_of(by_count[many])
    if one != other:
        batched = by_count[many].of(DatasetBatched)
        inside = [each.location for each in batched if each.size * many == other and each.location]
        message = f"each replica takes a whole batch: a step has {one} examples on {few} devices and {other} on {many}"
        yield compared("fm21", (few, many), inside[-1] if inside else made.location, message)


def batch_of(recording: Recording) -> int:
    """Returns the examples in a step, as batches were taken or else as replicas' datasets were batched; 0 if neither was seen."""
    taken = [sum(batch.sizes) for batch in recording.of(BatchTaken)]
    given = [recording.replicas * size for size in sizes_in_functions(recording)[-1:]]
    return recording.processes * max(taken or given, default=0)


def sizes_in_functions(recording: Recording) -> list[int]:
    """Returns the sizes of batches in functions that make a dataset for a replica."""
    made_at = {made.location[0] for made in recording.of(DatasetFromFunction) if made.location}
    return [each.size for each in recording.of(DatasetBatched) if made_at & set(each.location)]
