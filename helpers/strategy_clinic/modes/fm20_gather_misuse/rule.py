"""Blames, for fm20, the line that ends the step which is given to `run`, or the call if a sum over replicas was meant."""

import ast

from ...examiner import blame
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import ExceptionRaised, Frame, Stack

IN_REPLICA = "requires cross-replica context"  # a method of the strategy, which a step calls
SUMS = {*blame.SUMS, *blame.MEANS, "add_n"}


@blames("fm20")
def end_of_step(recording: Recording, stack: Stack) -> Stack:
    raised = recording.last(ExceptionRaised)
    is_in_replica = raised and IN_REPLICA in raised.traceback
    if stack and (is_in_replica or is_added_up(stack[0])):
        return stack
    return blame.from_return(blame.into_called(stack))


def is_added_up(frame: Frame) -> bool:
    """Tells whether the program adds up what a line gathers, which `reduce` does without a dimension to gather along."""
    statement = blame.statement_at(frame)
    names = blame.targets_of(statement) if isinstance(statement, blame.Assignment) else set()
    sums = [
        node
        for node in blame.nodes_in_scope(frame)
        if isinstance(node, ast.Call) and blame.called_name(node) in SUMS
    ]
    return any(
        names & {*blame.names_in(argument)}
        or "gather" in map(blame.called_name, blame.calls_in(argument))
        for call in sums
        for argument in call.args
    )
