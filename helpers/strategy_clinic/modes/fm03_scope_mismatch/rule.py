"""Blames, for fm03, the first variable of a model that no strategy distributes, although there is a strategy.

A program may have other models outside of the scope, and use none of them in training: the model that was compiled comes first.
"""

from ...examiner.blame import called_at, computes_gradient, from_maker
from ...examiner.recording import Recording
from ...examiner.rule import blames, reclassify
from ...observer.events import (
    ExceptionRaised,
    ModelCompiled,
    Owner,
    Stack,
    VariableMade,
)


@blames("fm03")
def variable_made_outside(recording: Recording, stack: Stack) -> Stack:
    model = recording.last(ModelCompiled)
    compiled = model.variables if model else ()
    outside = made_outside(recording)
    if not outside:
        return stack
    first = min(outside, key=lambda made: made.number not in compiled)
    return from_maker(first.location, stack)


def made_outside(recording: Recording) -> list[VariableMade]:
    return [
        made
        for made in recording.of(VariableMade)
        if made.maker is Owner.LAYER and made.location
        if not made.copies and made.number not in recording.copies
    ]


@reclassify("fm03")
def unless_in_step(run: Recording, mode: str, raised: ExceptionRaised, stack: Stack) -> str:
    """Tells a step that is called without `strategy.run`, where a model may be built, from a model that is made elsewhere."""
    steps = {frame.scope for frame in stack if computes_gradient(frame)}
    runs = any("run" in called_at(frame) for frame in stack)
    elsewhere = [
        made for made in made_outside(run) if not steps & {frame.scope for frame in made.location}
    ]
    return "fm31" if steps and not runs and not elsewhere else mode
