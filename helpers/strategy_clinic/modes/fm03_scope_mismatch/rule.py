"""Blames, for fm03, the first variable of a model that no strategy distributes, although there is a strategy."""

from ...examiner.blame import from_maker
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Owner, Stack, StrategyMade, VariableMade


@blames("fm03")
def variable_made_outside(recording: Recording, stack: Stack) -> Stack:
    strategies = recording.of(StrategyMade)
    strategy_made_at = strategies[0].location if strategies else ()
    for made in recording.of(VariableMade):
        distributed = made.copies or made.number in recording.copies
        if made.maker is Owner.LAYER and made.location and not distributed:
            return from_maker(made.location, (*strategy_made_at, *stack))
    return stack
