"""Questions to a run: what it has read, written, saved, loaded and trained of some variables, and when."""

from __future__ import annotations

from collections.abc import Iterable

from ..observer.events import (
    CheckpointRestored,
    Ended,
    Event,
    GradientsApplied,
    Loaded,
    OptimizerState,
    Saved,
    VariablesKept,
    VariableValue,
)
from .recording import Recording

COUNT_AND_RATE = (
    2  # the first variables of an optimizer; one that remembers no gradients has no others
)


def loads_of(
    run: Recording,
    numbers: Iterable[int],
    *,
    after: Event | None = None,
    until: Event | None = None,
) -> list[Loaded]:
    """Returns the loads that fill some of these variables."""
    wanted = {*numbers}
    return [e for e in run.of(Loaded, after=after, until=until) if wanted & {*e.variables}]


def updates_of(
    run: Recording, numbers: Iterable[int], *, after: Event | None = None
) -> list[GradientsApplied]:
    """Returns the updates that train some of these variables."""
    wanted = {*numbers}
    return [e for e in run.of(GradientsApplied, after=after) if wanted & {*e.optimizer.trains}]


def updates_by(
    run: Recording, numbers: Iterable[int], *, after: Event | None = None
) -> list[GradientsApplied]:
    """Returns the updates of the optimizer that has some of these variables; it may have got slots in between."""
    wanted = {*numbers}
    return [e for e in run.of(GradientsApplied, after=after) if wanted & {*e.optimizer.variables}]


def first_updates(
    run: Recording | None, *, after: Event | None = None, until: Event | None = None
) -> list[GradientsApplied]:
    """Returns the updates with which optimizers begin; none if there is no run."""
    updates = run.of(GradientsApplied, after=after, until=until) if run else []
    return [each for each in updates if not each.optimizer.steps]


def saves_to(run: Recording, *paths: str, until: Event | None = None) -> list[Saved]:
    """Returns what a run itself has saved to these paths, which are absolute."""
    return [each for each in run.of(Saved, until=until) if run.absolute(each.path) in paths]


def saves_of_file(run: Recording, load: Loaded | VariablesKept) -> list[tuple[Recording, Saved]]:
    """Returns what was saved before a load to the path that it reads, by this run or the one before that, each with its run."""
    path, before = run.absolute(load.path), run.before
    saves = [(run, each) for each in saves_to(run, path, until=load)]
    return saves + [(before, each) for each in saves_to(before, path)] if before else saves


def goes_back(run: Recording) -> bool:
    """Tells whether a program restores an earlier state and trains on from it: a number of updates is no single place then."""
    made: dict[tuple[int, ...], int] = {}  # the steps of each optimizer, which has these variables
    again: dict[tuple[int, ...], int] = {}  # and those to which a file has set it back
    for event in run.events:
        if not isinstance(event, Loaded | CheckpointRestored | Saved | Ended):
            continue
        for each in event.optimizers:
            if isinstance(event, Loaded) and made.get(each.variables, 0) > each.steps:
                again[each.variables] = each.steps
            elif each.steps > again.get(each.variables, each.steps):
                return True
            made[each.variables] = each.steps
    return False


def optimizers_of(run: Recording) -> tuple[OptimizerState, ...]:
    """Returns the optimizers as they are at the end."""
    return run.ended.optimizers


def values_at_end(run: Recording) -> tuple[VariableValue, ...]:
    return run.ended.values


def steps_at_end(run: Recording) -> list[int]:
    return [state.steps for state in optimizers_of(run)]
