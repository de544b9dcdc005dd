"""Checks fm43: every call of a traced function has traced it again, since each was given something new."""

import ast

from ...examiner.blame import argument_name, assigned_value, called_at, last_assignment
from ...examiner.recording import Recording
from ...examiner.rule import Steps, observed, rule
from ...observer.events import FunctionRetraced, RetraceCause, Stack


@rule("fm43", explains_divergence=False)
def traced_again(recording: Recording) -> Steps:
    for retraced in recording.of(FunctionRetraced):
        if retraced.location:
            message = (
                f"its calls trace the step again: each gets {retraced.cause.value} that is new"
            )
            proof = f"{retraced.calls} calls have traced it"
            yield observed("fm43", recording, from_new_argument(retraced), message, proof)


def from_new_argument(retraced: FunctionRetraced) -> Stack:
    """Returns the line that made the function or the argument that is new in each call, or else the call."""
    if retraced.made_at:
        return retraced.made_at
    call = retraced.location[0]
    if retraced.cause is not RetraceCause.NUMBER:
        return retraced.location
    name = argument_name(call, called_at(call), retraced.argument)
    assigned = last_assignment(call, name)
    is_first = is_literal(assigned_value(assigned))
    return (assigned, *retraced.location) if assigned and not is_first else retraced.location


def is_literal(value: ast.expr | None) -> bool:
    """Tells whether this is written out: the first value of a count, and not what a call gets in each step."""
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return all(isinstance(each, ast.Constant) for each in parts)
