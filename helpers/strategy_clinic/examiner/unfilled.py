"""Variables that a load left as they were: whether something fills them later, and what had left them out of the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..observer.events import (
    CheckpointRestored,
    GradientsApplied,
    Loaded,
    ModelCalled,
    ModelUsed,
    Owner,
    Saved,
    SaveKind,
    VariableRead,
    VariablesKept,
    VariableWritten,
)
from .history import saves_of_file
from .recording import Recording


def loads_with_kept(recording: Recording) -> list[VariablesKept]:
    """Returns the loads that left variables as they were, as far as their values are numbers."""
    return [
        each for each in recording.of(VariablesKept) if not recording.not_numbers & {*each.kept}
    ]


def is_filled_later(recording: Recording, load: VariablesKept) -> bool:
    """Tells whether something else sets the variables afterwards: the program, or a file that it has not made of them since."""
    kept = set(load.fitting or load.kept)
    own = {
        recording.absolute(save.path)
        for save in recording.of(Saved, after=load)
        if kept & {*save.variables}
    }
    after = recording.of(VariablesKept, after=load)[1:]
    still = {number for each in after for number in each.kept}
    filled = [(each.path, each.variables) for each in recording.of(Loaded, after=load)]
    restores = recording.of(CheckpointRestored, after=load)
    filled += [(each.path, each.variables) for each in restores if each.path]
    filling = [
        path
        for path, numbers in filled
        if kept & {*numbers} and recording.absolute(path) not in own
    ]
    writes = [
        each
        for each in recording.of(VariableWritten, after=load)
        if each.number in kept and each.writer in (Owner.USER, Owner.LAYER)
    ]
    return bool(filling) and not kept <= still or bool(writes)


def is_used_as_made(recording: Recording, load: VariablesKept) -> bool:
    """Tells whether the file has nothing for weights that are read or called afterwards, and that nothing trains or writes.

    A new head, which is trained after the load, is no such weight: the saved model had none like it, or it is trained alone.
    """
    weights, filled = kept_weights(recording, load), filled_weights(recording, load)
    if save_without(recording, load) is None:
        weights -= recording.trained | recording.written
    trained = [{*each.optimizer.trains} for each in recording.of(GradientsApplied, after=load)]
    weights = weights.difference(*(each for each in trained if not each & filled))
    used = {each.number for each in recording.of(VariableRead, after=load)}
    used |= {n for call in recording.of(ModelCalled, after=load) for n in call.variables}
    used |= {n for use in recording.of(ModelUsed, after=load) for n in use.variables}
    return recording.finished and not (load.fitting or load.skipped) and bool(weights & used)


def kept_weights(recording: Recording, load: VariablesKept) -> set[int]:
    return of_layers(recording, load.kept)


def filled_weights(recording: Recording, load: VariablesKept) -> set[int]:
    loads = [each for each in recording.of(Loaded) if each.path == load.path]
    filled = {number for each in loads for number in each.variables} - {*load.kept}
    return of_layers(recording, filled)


def of_layers(recording: Recording, numbers: Iterable[int]) -> set[int]:
    return {each for each in numbers if recording.maker_of(each) is Owner.LAYER}


def save_of(run: Recording, load: CheckpointRestored | Loaded | VariablesKept) -> Saved | None:
    """Returns the last save of this run under the path that is loaded."""
    saves = [save for save in run.of(Saved, until=load) if save.path == load.path]
    return saves[-1] if saves else None


def layers_left_out(run: Recording, save: Saved) -> set[int]:
    """Returns the weights that a checkpoint has not, though it was given the model or the layer that has them."""
    left = save.omitted if save.kind is SaveKind.CHECKPOINT else ()
    return of_layers(run, (each.number for each in left if each.of_saved))


def save_without(recording: Recording, load: VariablesKept) -> Saved | None:
    """Returns the save of the file if what was saved has as many weights of these shapes: it left out those that got nothing."""
    weights = kept_weights(recording, load) | filled_weights(recording, load)
    wanted = Counter(recording.shapes_of(weights))
    for run, save in saves_of_file(recording, load):
        numbers = {*save.variables, *(each.number for each in save.omitted)}
        if wanted <= Counter(run.shapes_of(of_layers(run, numbers))):
            return save
    return None
