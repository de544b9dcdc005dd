"""Blames, for fm31, the frames from the function on that made the strategy."""

from ...examiner.blame import from_maker
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack, StrategyMade


@blames("fm31")
def scope_opened(recording: Recording, stack: Stack) -> Stack:
    strategy = recording.last(StrategyMade)
    return from_maker(stack, strategy.location) if strategy else stack
