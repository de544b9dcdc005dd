"""Blames, for fm10, where a used optimizer was given a model with more variables, or else where it was made."""

from ...examiner.blame import from_factory, from_maker
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Owner, Stack, UsedOptimizerCompiled


@blames("fm10")
def compiled_again(recording: Recording, stack: Stack) -> Stack:
    compiled = recording.last(UsedOptimizerCompiled)
    if compiled and compiled.location:
        return compiled.location
    return from_maker(stack, from_factory(recording.first_made_by(Owner.OPTIMIZER)))
