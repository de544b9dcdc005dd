"""Variables that a load left as they were: whether something fills them later, and what had left them out of the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..observer.events import (
    CheckpointRestored,
    Loaded,
    ModelCalled,
    ModelUsed,
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
    weights = kept_weights(recording, load) - recording.trained - recording.written
    called = {each for call in recording.of(ModelCalled, after=load) for each in call.variables}
    called |= {each for use in recording.of(ModelUsed, after=load) for each in use.variables}
    is_called = bool(weights & called)
    return recording.finished and not (load.fitting or load.skipped) and is_called


def kept_weights(recording: Recording, load: VariablesKept) -> set[int]:
    return of_layers(recording, load.kept)


def filled_weights(recording: Recording, load: VariablesKept) -> set[int]:
    loads = [each for each in recording.of(Loaded) if each.path == load.path]
    filled = {number for each in loads for number in each.variables} - {*load.kept}
    return of_layers(recording, filled)


def of_layers(recording: Recording, numbers: Iterable[int]) -> set[int]:
    return {each for each in numbers if recording.maker_of(each) is Owner.LAYER}


def save_without(recording: Recording, load: VariablesKept) -> Saved | None:
    """Returns the save of the file if what was saved has as many weights of these shapes: it left out those that got nothing."""
    weights = kept_weights(recording, load) | filled_weights(recording, load)
    wanted = Counter(recording.shapes_of(weights))
    saves = [(recording, each) for each in recording.of(Saved, until=load)]
    if before := recording.before:
        saves += [(before, each) for each in before.of(Saved)]
    for run, save in saves:
        numbers = {*save.variables, *(each.number for each in save.omitted)}
        if save.path == load.path and wanted <= Counter(run.shapes_of(of_layers(run, numbers))):
            return save
    return None
