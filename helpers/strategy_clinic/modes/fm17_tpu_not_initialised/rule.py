"""Blames, for fm17, whoever decided about the TPU."""

from ...examiner.blame import from_caller
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack


@blames("fm17")
def decision(recording: Recording, stack: Stack) -> Stack:
    return from_caller(stack)
