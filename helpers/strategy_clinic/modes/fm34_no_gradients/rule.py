"""Blames, for fm34, where the loss comes from of which a gradient is None."""

from ...examiner.blame import from_argument
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack


@blames("fm34")
def loss_without_gradient(recording: Recording, stack: Stack) -> Stack:
    return from_argument(recording.last_incomplete_gradient or stack, ("gradient",))
