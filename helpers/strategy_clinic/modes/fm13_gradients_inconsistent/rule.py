"""Blames, for fm13, the line that computed a gradient of which a part is None."""

from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack


@blames("fm13")
def gradient_with_none(recording: Recording, stack: Stack) -> Stack:
    return recording.last_incomplete_gradient or stack
