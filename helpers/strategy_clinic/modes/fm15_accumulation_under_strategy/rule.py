"""Blames, for fm15, the frame in which a condition or a loop leads to what failed."""

from ...examiner.blame import branch_around, called_at, from_first
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack

CONDITIONS = {"cond", "case", "while_loop"}


@blames("fm15")
def from_condition(recording: Recording, stack: Stack) -> Stack:
    if asked := from_first(stack, lambda frame: CONDITIONS & {*called_at(frame)}):
        return asked
    for i, frame in enumerate(stack):
        if "run" in called_at(frame):
            break
        branch = branch_around(frame)
        if branch is not None:
            return (frame._replace(line=branch.lineno), *stack[i:])
    return stack
