"""Blames, for fm36, the last strategy: it is of another size than the one before."""

from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack, StrategyMade


@blames("fm36")
def last_strategy(recording: Recording, stack: Stack) -> Stack:
    strategy = recording.last(StrategyMade)
    return strategy.location if strategy else stack
