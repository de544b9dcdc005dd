"""Blames, for fm04, the line that made up the path."""

from ...examiner.blame import FILE_FUNCTIONS, from_argument
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack


@blames("fm04")
def path_given(recording: Recording, stack: Stack) -> Stack:
    return from_argument(stack, FILE_FUNCTIONS)
