"""Checks fm08: nothing is restored, although the program has saved a checkpoint of the same objects, or near the same place."""

import ast
import os
import re

from ...examiner import blame
from ...examiner.blame import FILE_FUNCTIONS, from_argument
from ...examiner.moments import is_part, looks_for
from ...examiner.options import Options, Origin, can_be_given, line_made_anew
from ...examiner.recording import Recording
from ...examiner.restarts import begins_from_zero, finding
from ...examiner.rule import Steps, blames, names, observed, rule
from ...observer.events import (
    CheckpointRestored,
    CheckpointSought,
    ExceptionRaised,
    FileMoved,
    Frame,
    Loaded,
    LoadUnused,
    LookedFor,
    Saved,
    SaveKind,
    Stack,
)
from ...programs.error_text import useful_line

Sought = CheckpointSought | LookedFor
RESTORES = "restore", "read"
# What gets the folder of checkpoints.
MANAGERS = {"CheckpointManager", "latest_checkpoint", "get_checkpoint_state", "BackupAndRestore"}

# What Python, h5py and Keras say of a file that is not there, and a path in it, which may have spaces.
MISSING = re.compile(r"No such file|File not found|No file or directory found")
QUOTED = re.compile(r"(?<!\w)(?P<quote>['\"])(?P<path>.+?)(?P=quote)(?!\w)")
UNQUOTED = re.compile(r"(?:filepath=| at )(?P<path>.+?)(?=\.?$|\. )")


@rule("fm08", explains_divergence=False)
def restored_nothing(recording: Recording) -> Steps:
    saved = [save for save in recording.saves_before_start if save.kind is SaveKind.CHECKPOINT]
    for first in recording.of(CheckpointRestored)[:1]:
        same_object = all(save.made_at[:1] == first.made_at[:1] for save in saved)
        sought = recording.of(CheckpointSought, until=first)
        is_empty = first.path is None or is_other_path(recording, first)
        if saved and same_object and is_empty and first.location:
            stopped = recording.before
            if stopped and sought and is_option(recording, stopped, sought[-1]):
                continue
            message = f"restore is given {first.path or 'no path'}, and restores nothing"
            proof = f"{saved[-1].path} was there, saved before the restart"
            yield observed("fm08", recording, first.location, message, proof)


def is_other_path(recording: Recording, restored: CheckpointRestored) -> bool:
    """Tells whether a restart restores a path to which nothing was saved, and goes on with the values that it has made."""
    stopped, whole = recording.before, recording.whole
    if not stopped or not whole or not restored.path:
        return False
    path = recording.absolute(restored.path)
    known = saved_paths(stopped) | {whole.absolute(load.path) for load in whole.of(Loaded)}
    return path not in known and begins_from_zero(recording, whole)


@rule("fm08")
def sought_in_vain(recording: Recording) -> Steps:
    for sought in recording.of(CheckpointSought):
        overlooked = overlooked_by(recording, sought)
        if not overlooked or not sought.location:
            continue
        if is_prefix(recording, sought, overlooked) or not is_first_start(recording, sought):
            message = f"no checkpoint is found in {sought.folder}, although this program has saved one near it"
            proof = f"{overlooked.path} was there"
            if overlooked.kind is not SaveKind.CHECKPOINT:
                message = "the latest checkpoint is sought where this program saves files of Keras: none is found"
            yield observed("fm08", recording, sought.location, message, proof)


@rule("fm08")
def loaded_in_vain(recording: Recording) -> Steps:
    for load in recording.of(LoadUnused) if recording.finished else ():
        if load.location:
            message = f"{load.name} is loaded here, and nothing uses it afterwards"
            proof = f"{load.used}, which has the same shapes and other values, is used instead"
            yield observed("fm08", recording, load.location, message, proof)


def overlooked_by(recording: Recording, sought: CheckpointSought) -> Saved | None:
    """Returns the last save into a file near the place where nothing was found."""
    saves = [*recording.saves_before_start, *recording.of(Saved, until=sought)]
    if any(save.kind is SaveKind.CHECKPOINT for save in (*saves, *recording.of(Saved))):
        saves = [save for save in saves if save.kind is SaveKind.CHECKPOINT]
    nearby = {*map(recording.absolute, sought.nearby)}
    near = [save for save in saves if recording.absolute(save.path) in nearby]
    return near[-1] if near else None


def is_prefix(recording: Recording, sought: CheckpointSought, save: Saved) -> bool:
    """Tells whether a checkpoint is sought at what was given to `save`, to which its number is added."""
    path, prefix = recording.absolute(save.path), recording.absolute(sought.folder)
    return path.removeprefix(f"{prefix}-").isdecimal()


def is_first_start(recording: Recording, sought: CheckpointSought) -> bool:
    """Tells whether the program then finds another file, or is the first to save in this folder, as in a second phase.

    What it saves afterwards and loads again is no such file.
    """
    folder = recording.absolute(sought.folder)
    saved = {recording.absolute(save.path) for save in recording.of(Saved, after=sought)}
    before = {recording.absolute(save.path) for save in recording.saves_before_start}
    loaded = {recording.absolute(load.path) for load in recording.of(Loaded, after=sought)}
    found = [each for each in recording.of(CheckpointSought, after=sought) if each.path]
    restored = [each for each in recording.of(CheckpointRestored, after=sought) if each.path]
    own = [path for path in saved - before if os.path.dirname(path) == folder]
    return bool(found or restored or loaded - saved or own)


# What is sought at another place than the one where it is saved


@rule("fm08", explains_divergence=False)
def begun_from_zero(run: Recording) -> Steps:
    if run.before and run.whole and run.finished and begins_from_zero(run, run.whole):
        yield from sought_in_new_folder(run, run.before)


def sought_in_new_folder(run: Recording, stopped: Recording) -> Steps:
    """Yields the lines that look for the last save in another folder at each start, if no option can give one."""
    before = sought_at_start(stopped)
    for location, sought in sought_at_start(run).items():
        earlier = before.get(location, [])
        places = {stopped.absolute(place_of(each)) for each in earlier}
        is_new = not places & {run.absolute(place_of(each)) for each in sought}
        saved = [
            save.path
            for save in stopped.of(Saved)
            if any(looks_for(each, stopped, stopped.absolute(save.path)) for each in earlier)
        ]
        if is_new and saved and not is_option(run, stopped, sought[-1]):
            named = line_made_anew(location, Options(run), folders_used)
            location = (named, *location) if named else location
            message = f"each start looks in another folder: {saved[-1]} was there, and it begins from zero"
            fix = "give the folder a name that is the same at each start"
            yield finding(run, location, message, fix, mode="fm08")


def is_option(run: Recording, stopped: Recording, sought: Sought) -> bool:
    """Tells whether the user can give the folder in which a run looks, or what it restores, as an option."""
    options, before = Options(run), Options(stopped)
    is_default = options.given_otherwise(before, run.absolute(place_of(sought)))
    if is_default or any(Origin(each, options).loads_option(RESTORES) for each in sought.location):
        return True
    if line_made_anew(sought.location, options, folders_used):
        return False
    return can_be_given(sought.location, options, folders_used)


def folders_used(frame: Frame) -> list[ast.expr]:
    """Returns what a line gives to callbacks and functions that get the folder of checkpoints; else what its file gives them.

    Of a line that calls a function of the program, what it gives to that.
    """
    here = blame.calls_in(blame.statement_at(frame))
    calls = managers_among(here) or managers_among(blame.calls_in_file(frame.path)) or here
    return [each for call in calls for each in blame.arguments_of(call)]


def managers_among(calls: list[ast.Call]) -> list[ast.Call]:
    return [each for each in calls if blame.called_name(each) in MANAGERS]


def sought_at_start(run: Recording) -> dict[Stack, list[Sought]]:
    """Returns by line what looks for checkpoints before the first save: callbacks that go on, and the program itself."""
    found: dict[Stack, list[Sought]] = {}
    first = run.first(Saved)
    for sought in run.of(CheckpointSought, until=first):
        found.setdefault(sought.location, []).append(sought)
    for looked in run.of(LookedFor, until=first):
        if blame.calls_at(looked.location, "BackupAndRestore"):
            found.setdefault(looked.location, []).append(looked)
    return {location: events for location, events in found.items() if location}


def place_of(sought: Sought) -> str:
    return sought.folder if isinstance(sought, CheckpointSought) else sought.path


def saved_paths(*runs: Recording) -> set[str]:
    return {run.absolute(save.path) for run in runs for save in run.of(Saved)}


# What is loaded from another folder than the one where it is saved


@names("fm08")
def missing_beside(run: Recording, raised: ExceptionRaised) -> bool:
    """Tells whether a second start asks for a file by the name of one that the program saves, in a folder where it saves none."""
    stopped, whole = run.before, run.whole
    if not stopped or not whole:
        return False
    saved = saved_paths(stopped, whole, run)
    known = {os.path.basename(path) for path in saved}
    missing = missing_files(run, raised, stopped, whole) - saved
    return any(os.path.basename(path) in known for path in missing)


def missing_files(run: Recording, raised: ExceptionRaised, *others: Recording) -> set[str]:
    """Returns the paths that an exception says are not there, but for what one of these runs has given another name."""
    if not MISSING.search(raised.traceback):
        return set()
    line = useful_line(raised.traceback)
    paths = [found["path"] for form in (QUOTED, UNQUOTED) for found in form.finditer(line)]
    missing = {*map(run.absolute, paths)}
    moved = moved_paths(run, *others)
    return {path for path in missing if not any(is_part(path, other) for other in moved)}


def moved_paths(*runs: Recording) -> set[str]:
    """Returns the paths of files that a run has renamed or copied, before and after."""
    moves = [(run, moved) for run in runs for moved in run.of(FileMoved)]
    return {run.absolute(path) for run, moved in moves for path in (moved.source, moved.target)}


@blames("fm08")
def path_given(recording: Recording, stack: Stack) -> Stack:
    return from_argument(stack, FILE_FUNCTIONS)
