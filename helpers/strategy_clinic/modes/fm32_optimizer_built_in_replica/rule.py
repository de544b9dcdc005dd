"""Blames, for fm32, where the optimizer was made: the traceback may end at `strategy.run`."""

from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Owner, Stack


@blames("fm32")
def optimizer_made(recording: Recording, stack: Stack) -> Stack:
    return recording.first_made_by(Owner.OPTIMIZER) or stack
