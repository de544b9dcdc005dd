"""Variables that a load left as they were: whether something fills them later, and what had left them out of the file."""

from __future__ import annotations

from collections import Counter

from ..observer.events import (
    CheckpointRestored,
    Loaded,
    ModelCalled,
    Owner,
    Saved,
    VariablesKept,
    VariableWritten,
)
from .recording import Recording


def is_filled_later(recording: Recording, load: VariablesKept) -> bool:
    """Tells whether something else sets the variables afterwards: another load, or the program itself."""
    kept = set(load.fitting or load.kept)
    after = recording.of(VariablesKept, after=load)[1:]
    still = {number for each in after for number in each.kept}
    loads = [each for each in recording.of(Loaded, after=load) if kept & set(each.variables)]
    restores = [each for each in recording.of(CheckpointRestored, after=load) if each.path]
    restored = [each for each in restores if kept & set(each.variables)]
    writes = [
        each
        for each in recording.of(VariableWritten, after=load)
        if each.number in kept and each.writer in (Owner.USER, Owner.LAYER, Owner.CHECKPOINT)
    ]
    return bool(loads or restored) and not kept <= still or bool(writes)


def is_used_as_made(recording: Recording, load: VariablesKept) -> bool:
    """Tells whether the file has nothing for weights of a model that is called afterwards, and that nothing trains or writes.

    A new head, which is trained after the load, is no such weight.
    """
    weights = weights_of(recording, load) - recording.trained - recording.written
    calls = recording.of(ModelCalled, after=load)
    is_called = any(weights & {*call.variables} for call in calls)
    return recording.finished and not (load.fitting or load.skipped) and is_called


def weights_of(recording: Recording, load: VariablesKept) -> set[int]:
    return {each for each in load.kept if recording.maker_of(each) is Owner.LAYER}


def save_without(recording: Recording, load: VariablesKept) -> Saved | None:
    """Returns the save of the file, if it left out variables of the program that are shaped like those that got nothing."""
    wanted = Counter(recording.shapes_of(weights_of(recording, load)))
    saves = [(recording, each) for each in recording.of(Saved, until=load)]
    if before := recording.before:
        saves += [(before, each) for each in before.of(Saved)]
    for run, save in saves:
        omitted = Counter(run.shapes_of(each.number for each in save.omitted))
        if save.path == load.path and wanted and wanted <= omitted:
            return save
    return None
