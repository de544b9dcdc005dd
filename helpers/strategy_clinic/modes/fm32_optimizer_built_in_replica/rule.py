"""Blames, for fm32, where the optimizer was made: the traceback may end at `strategy.run`."""

from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack


@blames("fm32")
def optimizer_made(recording: Recording, stack: Stack) -> Stack:
    return recording.optimizer_made_at or stack
