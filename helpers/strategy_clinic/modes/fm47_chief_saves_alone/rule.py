"""Checks fm47: one of several workers waits for ever in a save, or for a value, and the others do not take part."""

from dataclasses import replace

from ...examiner.findings import Location, Note, Text
from ...examiner.hangs import hangs, is_reading, is_saving, one_waits
from ...examiner.recording import Recording
from ...examiner.rule import Runs, Steps, names, rule_of_runs
from ...observer.events import ExceptionRaised, Saved, SaveKind

MERGES = (
    "MergeV2Checkpoints"  # the operation that makes the files of a checkpoint out of temporary ones
)
READ = "read the value on every worker, and print it on one"


@rule_of_runs("fm47")
def chief_waits(runs: Runs) -> Steps:
    if one_waits(runs.recordings, is_saving):
        yield from hangs(runs.recordings, "fm47")
    if one_waits(runs.recordings, is_reading):
        for finding in hangs(runs.recordings, "fm47"):
            yield replace(finding, fix=READ)


@rule_of_runs("fm47")
def all_save_to_one_path(runs: Runs) -> Steps:
    """Notes that several workers save to one path: they may have a file system each."""
    saved: dict[str, str] = {}  # the task that has saved to a path
    for run in [each for each in runs.recordings if each.task]:
        for save in [each for each in run.of(Saved) if each.kind is not SaveKind.ARRAYS]:
            task = saved.setdefault(run.absolute(save.path), run.task)
            if task != run.task and save.location:
                yield Note(
                    Text(
                        f"{task} and {run.task} save to the same path, {save.path} (",
                        Location(save.location),
                        "): if they share a file system, they write the same files at the same time. Give each worker a folder "
                        "of its own (fm47)",
                    )
                )
                return


@names("fm47")
def files_of_another_worker(run: Recording, raised: ExceptionRaised) -> bool:
    """Tells whether one of several workers has not found what it has just written: another one has moved or deleted it."""
    return bool(run.task) and MERGES in raised.traceback
