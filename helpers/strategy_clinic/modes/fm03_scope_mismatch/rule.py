"""Blames, for fm03, the first variable of a model that no strategy distributes, although there is a strategy.

A program may have other models outside of the scope, and use none of them in training: the model that was compiled comes first.
"""

from ...examiner.blame import from_maker
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import ModelCompiled, Owner, Stack, StrategyMade, VariableMade


@blames("fm03")
def variable_made_outside(recording: Recording, stack: Stack) -> Stack:
    strategies = recording.of(StrategyMade)
    strategy_made_at = strategies[0].location if strategies else ()
    model = recording.last(ModelCompiled)
    compiled = model.variables if model else ()
    outside = [
        made
        for made in recording.of(VariableMade)
        if made.maker is Owner.LAYER and made.location
        if not made.copies and made.number not in recording.copies
    ]
    if not outside:
        return stack
    first = min(outside, key=lambda made: made.number not in compiled)
    # A model that is built by its first call has no variables before that
    made = model.made_outside if model and first.number in compiled else ()
    return from_maker(made or first.location, (*strategy_made_at, *stack))
