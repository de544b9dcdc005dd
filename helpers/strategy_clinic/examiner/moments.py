"""Chooses the moments at which a program is killed, by what its whole run has saved and looked for."""

from __future__ import annotations

import itertools
import math
import os

from ..observer.events import (
    CallbackState,
    CheckpointRestored,
    CheckpointSought,
    Event,
    FileMoved,
    FileWritten,
    LookedFor,
    Saved,
    SavedAgain,
    SaveKind,
)
from .recording import Moment, Recording

Options = tuple[str, ...]  # of the observer, for a run that is killed
Save = Saved | SavedAgain


def moments_of(run: Recording) -> dict[Moment, Options]:
    """Returns at which moments a program can be killed."""
    saves = saves_of(run)
    if not saves:
        return {Moment.AFTER: ("--die",)}
    first = saves[0].steps
    # A callback may write more files after what is seen as its save, so it gets one more step.
    after = ("--die-at-step", str(first + 1)) if run.steps > first else ("--die",)
    moments: dict[Moment, Options] = {Moment.AFTER: after}
    if step := step_between(run):
        moments[Moment.BETWEEN] = ("--die-at-step", str(step))
    moments[Moment.DURING] = ("--die-in-save", str(saves.index(interrupted(run)) + 1))
    return moments


def usual_moment(run: Recording) -> dict[Moment, Options]:
    """Returns the moment at which a program is killed if nobody asks for one: between two saves, if it makes steps there."""
    moments = moments_of(run)
    moment = Moment.BETWEEN if Moment.BETWEEN in moments else Moment.AFTER
    return {moment: moments[moment]}


def later_moment(run: Recording) -> dict[Moment, Options]:
    """Returns a moment after all that the program writes beside its first save; none if it saves once."""
    moments = moments_of(run)
    is_later = interrupted(run) is not saves_of(run)[0] if saves_of(run) else False
    return {Moment.DURING: moments[Moment.DURING]} if is_later else {}


def saves_of(run: Recording) -> list[Save]:
    return [event for event in run.events if isinstance(event, (Saved, SavedAgain))]


def step_between(run: Recording) -> int:
    """Returns a step between two saves in the middle of the run, 0 if there is none: something has changed by then.

    What callbacks forget shows where the next epoch is no better than those before, so such a place is preferred. Otherwise it is
    one after what is saved last has been saved before: a program with several phases may have a checkpoint for each.
    """
    ends = sorted({save.steps for save in saves_of(run)} | {run.steps})
    gaps = [(one, other) for one, other in itertools.pairwise(ends) if other - one > 2]
    worse = steps_without_improvement(run)
    telling = [gap for gap in gaps if any(gap[0] < step <= gap[1] for step in worse)]
    late = [gap for gap in gaps if gap[0] >= last_checkpoint_begins(run)] or gaps
    start, end = next(iter([*telling, *late[len(late) // 2 :]]), (0, 0))
    return (start + end + 1) // 2


def last_checkpoint_begins(run: Recording) -> int:
    """Returns after which step the checkpoint that is saved last was saved for the first time; 0 if there is none."""
    saves = run.checkpoints
    return next((save.steps for save in saves if save.made_at == saves[-1].made_at), 0)


def steps_without_improvement(run: Recording) -> list[int]:
    """Returns after which steps a callback has found that an epoch is no better than the best one."""
    last: dict[tuple[str, str], float | None] = {}
    steps = []
    for state in run.of(CallbackState):
        key = state.callback, state.path
        same = not state.begins and last.get(key) == state.best
        if same and state.best is not None and math.isfinite(state.best):
            steps.append(state.steps)
        last[key] = state.best
    return steps


def interrupted(run: Recording) -> Save:
    """Returns the save during which a program is killed: one that is not the first, of a file that it looked for."""
    saves = saves_of(run)
    later = [save for save in saves if save.steps > saves[0].steps]
    sought = [save for save in later if is_sought(run, save.path)]
    return next(iter([*sought, *later, *saves[1:], *saves]))


# Programs that are made to be started again


def has_late_file(run: Recording) -> bool:
    """Tells whether a program looks for a file that no killed run leaves: it is first saved after all moments."""
    saves = saves_of(run)
    last_kill = max([saves[0].steps, step_between(run)] if saves else [0])
    early = [save for save in saves if save is saves[0] or save.steps < last_kill]
    folders = {folder_of(run, save) for save in early}
    paths = {run.absolute(save.path) for save in early}
    for save in run.of(Saved):
        path = run.absolute(save.path)
        is_checkpoint = save.kind is SaveKind.CHECKPOINT
        is_late = folder_of(run, save) not in folders if is_checkpoint else path not in paths
        kind: type[Event] = CheckpointSought if is_checkpoint else LookedFor
        if is_late and any(looks_for(each, run, path) for each in run.of(kind, until=save)):
            return True
    return False


def folder_of(run: Recording, save: Save) -> str:
    return os.path.dirname(run.absolute(save.path))


def means_to_go_on(run: Recording) -> bool:
    """Tells whether a program looked for what it saves before it saved anything: it may have been stopped before.

    Or for a file of its own that it writes, such as a list of what is done, while it saves others.
    """
    saves = run.of(Saved)
    written: dict[Event, str] = {each: each.path for each in run.of(FileWritten)}
    written |= {each: each.target for each in run.of(FileMoved)}
    is_own = any(
        run.absolute(look.path) == run.absolute(path)
        for event, path in written.items()
        for look in run.of(LookedFor, until=event)
    )
    return bool(saves) and (is_own or any(is_sought(run, save.path) for save in saves))


def is_sought(run: Recording, path: str) -> bool:
    first = next((i for i, event in enumerate(run.events) if isinstance(event, Saved)), 0)
    return any(looks_for(event, run, run.absolute(path)) for event in run.events[:first])


def looks_for(event: Event, run: Recording, path: str) -> bool:
    match event:
        case CheckpointSought(folder=folder):
            return is_in(path, run.absolute(folder))
        case CheckpointRestored(path=None):
            return True
        case LookedFor(path=sought, lists=True):
            pattern, star, _ = run.absolute(sought).partition("*")
            return path.startswith(pattern) if star else is_in(path, pattern)
        case CheckpointRestored(path=str(sought)):
            return is_part(run.absolute(sought), path)
        case LookedFor(path=sought):
            return is_part(run.absolute(sought), path) or is_beside(run.absolute(sought), path, run)
    return False


def is_in(path: str, folder: str) -> bool:
    return os.path.dirname(path) == folder or os.path.dirname(os.path.dirname(path)) == folder


def is_beside(sought: str, path: str, run: Recording) -> bool:
    """Tells whether this lies in a folder for what is saved, such as a file that names the last checkpoint."""
    folder = os.path.dirname(path)
    return os.path.dirname(sought) == folder != run.absolute("")


def is_part(sought: str, path: str) -> bool:
    """Tells whether this is what was saved, or one of its files, such as `ck-1.index`."""
    return sought == path or sought.startswith((f"{path}.", f"{path}{os.sep}"))
