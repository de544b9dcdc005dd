"""Checks fm08: nothing is restored, although the program has saved a checkpoint of the same objects, or near the same place."""

import os
from collections.abc import Iterator

from ...examiner.blame import FILE_FUNCTIONS, from_argument
from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import blames, observed, rule
from ...observer.events import (
    CheckpointRestored,
    CheckpointSought,
    Loaded,
    LoadUnused,
    Saved,
    SaveKind,
    Stack,
)


@rule("fm08", explains_divergence=False)
def restored_nothing(recording: Recording) -> Iterator[Finding]:
    saved = [save for save in recording.saves_before_start if save.kind is SaveKind.CHECKPOINT]
    for first in recording.of(CheckpointRestored)[:1]:
        same_object = all(save.made_at[:1] == first.made_at[:1] for save in saved)
        if saved and same_object and first.path is None and first.location:
            message = "restore is given no path, and restores nothing"
            proof = f"{saved[-1].path} was there, saved before the restart"
            yield observed("fm08", recording, first.location, message, proof)


@rule("fm08")
def sought_in_vain(recording: Recording) -> Iterator[Finding]:
    for sought in recording.of(CheckpointSought):
        overlooked = overlooked_by(recording, sought)
        if overlooked and sought.location and not is_first_start(recording, sought):
            message = f"no checkpoint is found in {sought.folder}, although this program has saved one near it"
            proof = f"{overlooked.path} was there"
            if overlooked.kind is not SaveKind.CHECKPOINT:
                message = "the latest checkpoint is sought where this program saves files of Keras: none is found"
            yield observed("fm08", recording, sought.location, message, proof)


@rule("fm08", explains_divergence=False)
def sought_elsewhere(recording: Recording) -> Iterator[Finding]:
    """Checks whether nothing is restored since the program has saved in another folder."""
    for sought in recording.of(CheckpointSought):
        is_known = sought.path is not None or sought.nearby or is_first_start(recording, sought)
        nothing = [
            each for each in recording.of(CheckpointRestored, after=sought) if each.path is None
        ]
        saves = recording.of(Saved, until=sought)
        kept = [save for save in saves if save.kind is SaveKind.CHECKPOINT]
        if recording.finished and kept and nothing and sought.location and not is_known:
            message = f"no checkpoint is found in {sought.folder}, and restore restores nothing"
            proof = f"this program has saved {kept[-1].path}"
            yield observed("fm08", recording, sought.location, message, proof)


@rule("fm08")
def loaded_in_vain(recording: Recording) -> Iterator[Finding]:
    for load in recording.of(LoadUnused):
        if load.location:
            message = f"{load.name} is loaded here, and nothing uses it afterwards"
            proof = f"{load.used}, which has the same shapes and other values, is used instead"
            yield observed("fm08", recording, load.location, message, proof)


def overlooked_by(recording: Recording, sought: CheckpointSought) -> Saved | None:
    """Returns the last save into a file near the place where nothing was found."""
    saves = [*recording.saves_before_start, *recording.of(Saved, until=sought)]
    if any(save.kind is SaveKind.CHECKPOINT for save in (*saves, *recording.of(Saved))):
        saves = [save for save in saves if save.kind is SaveKind.CHECKPOINT]
    near = [save for save in saves if any(is_same(save.path, path) for path in sought.nearby)]
    return near[-1] if near else None


def is_first_start(recording: Recording, sought: CheckpointSought) -> bool:
    """Tells whether the program then finds another file, or is the first to save in this folder, as in a second phase."""
    folder = os.path.normpath(sought.folder)
    later = recording.of(Saved, after=sought)
    found = [each for each in recording.of(CheckpointSought, after=sought) if each.path]
    restored = [each for each in recording.of(CheckpointRestored, after=sought) if each.path]
    own = [save for save in later if os.path.dirname(os.path.normpath(save.path)) == folder]
    return bool(found or restored or recording.of(Loaded, after=sought) or own)


def is_same(one: str, other: str) -> bool:
    """Tells whether two paths may name one file: a program gives some as they are and others from its folder on."""
    one, other = os.path.normpath(one), os.path.normpath(other)
    return one == other or one.endswith(f"{os.sep}{other}") or other.endswith(f"{os.sep}{one}")


@blames("fm08")
def path_given(recording: Recording, stack: Stack) -> Stack:
    return from_argument(stack, FILE_FUNCTIONS)
