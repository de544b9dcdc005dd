"""Blames, for fm18, whoever decided about the devices of the last strategy."""

from ...examiner.blame import from_caller
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack, StrategyMade


@blames("fm18")
def strategy_given(recording: Recording, stack: Stack) -> Stack:
    strategy = recording.last(StrategyMade)
    return from_caller(strategy.location if strategy else stack)
