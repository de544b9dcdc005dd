"""What a run was not allowed to change, since it is outside of its folder and no view can hold it: the examination ends there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...base.errors import UserError
from ...observer.events import ExceptionRaised, HeldChildFailed, WriteRefused
from ..findings import Location
from ..recording import Recording
from .workspace import Workspace

READ_ONLY = "Read-only file system"  # as the system says it, in Python and in TensorFlow


def require_no_refusal(
    recording: Recording, files: Workspace, told: Callable[[Location], Location]
) -> None:
    """Raises UserError if a run has ended since it was not allowed to write where it wanted to."""
    refused, raised = recording.last(WriteRefused), recording.last(ExceptionRaised)
    if refused:
        where = f" ({told(Location(refused.location))})" if refused.location else ""
        what = (
            f"change {refused.path!r}" if refused.path.startswith("/") else f"run {refused.path!r}"
        )
        raise UserError(
            f"The program wants to {what}{where}, outside of its folder, and what this would change cannot be kept apart "
            f"here ({files.why}): nothing was changed; let it write into its folder."
        )
    last = raised.traceback.strip().splitlines()[-1] if raised else ""
    places = [place for place in files.read_only if place in last or is_in(files.folder, place)]
    if READ_ONLY in last and places:
        raise UserError(
            f"The program writes to a place that can only be read while it is examined, and ended with {last}"
        )


def is_in(folder: Path, place: str) -> bool:
    return folder.is_relative_to(place)


def held_children(recordings: list[Recording]) -> list[str]:
    """Returns what is not known of programs that failed where they could write only into the folder."""
    failed = [event for recording in recordings for event in recording.of(HeldChildFailed)]
    return [
        f"{event.command!r} ended with status {event.status}, perhaps since it could write only into the program's folder"
        for event in dict.fromkeys(failed)
    ]
