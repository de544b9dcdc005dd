"""Checks fm08: after a restart, the first restore is given no path, although a checkpoint of the same objects was saved."""

from collections.abc import Iterator

from ...examiner.blame import FILE_FUNCTIONS, from_argument
from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import blames, observed, rule
from ...observer.events import CheckpointRestored, SaveKind, Stack


@rule("fm08")
def restored_nothing(recording: Recording) -> Iterator[Finding]:
    saved = [save for save in recording.saves_before_start if save.kind is SaveKind.CHECKPOINT]
    for first in recording.of(CheckpointRestored)[:1]:
        same_object = all(save.made_at[:1] == first.made_at[:1] for save in saved)
        if saved and same_object and first.path is None and first.location:
            message = "restore is given no path, and restores nothing"
            proof = f"{saved[-1].path} was there, saved before the restart"
            yield observed("fm08", recording, first.location, message, proof)


@blames("fm08")
def path_given(recording: Recording, stack: Stack) -> Stack:
    return from_argument(stack, FILE_FUNCTIONS)
