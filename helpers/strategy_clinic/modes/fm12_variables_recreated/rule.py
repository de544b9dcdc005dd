"""Blames, for fm12, whoever calls the function that only makes the variables."""

from ...examiner.blame import from_factory
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack


@blames("fm12")
def variables_made(recording: Recording, stack: Stack) -> Stack:
    return from_factory(stack)
