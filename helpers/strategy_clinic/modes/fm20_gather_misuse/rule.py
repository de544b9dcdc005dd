"""Blames, for fm20, the line that ends the step which is given to `run`."""

from ...examiner import blame
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack


@blames("fm20")
def end_of_step(recording: Recording, stack: Stack) -> Stack:
    found = blame.from_return(stack)
    return blame.from_return(blame.into_called(stack)) if found == stack else found
