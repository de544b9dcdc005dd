"""Blames, for fm20, the line that ends the step which is given to `run`."""

from ...examiner.blame import from_return
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack


@blames("fm20")
def end_of_step(recording: Recording, stack: Stack) -> Stack:
    return from_return(stack)
