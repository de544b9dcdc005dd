"""Blames, for fm06, where the model was built that does not take the weights, or where a number for it was written down."""

import ast

from ...examiner.blame import assigned_value, code_at, last_assignment, names_in, statement_at
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack


@blames("fm06")
def architecture(recording: Recording, stack: Stack) -> Stack:
    name, loads, _ = (
        code_at(stack[0].path, stack[0].line).partition(".load_weights(") if stack else ("", "", "")
    )
    made = last_assignment(stack[0], name) if loads and name.isidentifier() else None
    return (made, *stack) if made else from_literal(stack)


def from_literal(stack: Stack) -> Stack:
    """Returns the line of this function in which a value that is used here was written down."""
    for name in names_in(statement_at(stack[0])) if stack else ():
        assigned = last_assignment(stack[0], name)
        if assigned and isinstance(assigned_value(assigned), ast.Constant | ast.Dict | ast.List):
            return (assigned, *stack)
    return stack
