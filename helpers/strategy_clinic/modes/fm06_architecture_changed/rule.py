"""Blames, for fm06, where the model was built that does not take the weights, or where a number for it was written down."""

import ast

from ...examiner.blame import (
    assigned_value,
    code_at,
    last_assignment,
    names_in,
    nodes_of_file,
    statement_at,
)
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Frame, Stack

LITERALS = ast.Constant, ast.Dict, ast.List


@blames("fm06")
def architecture(recording: Recording, stack: Stack) -> Stack:
    name, loads, _ = (
        code_at(stack[0].path, stack[0].line).partition(".load_weights(") if stack else ("", "", "")
    )
    made = last_assignment(stack[0], name) if loads and name.isidentifier() else None
    return (from_default(made) or made, *stack) if made else from_literal(stack)


def from_literal(stack: Stack) -> Stack:
    """Returns the line of this function in which a value that is used here was written down."""
    for name in names_in(statement_at(stack[0])) if stack else ():
        assigned = last_assignment(stack[0], name)
        if assigned and isinstance(assigned_value(assigned), LITERALS):
            return (assigned, *stack)
        if default := from_default(assigned):
            return (default, *stack)
    return stack


def from_default(made: Frame | None) -> Frame | None:
    """Returns where a function of this file that builds a model, called without arguments, has its numbers."""
    call = assigned_value(made) if made else None
    if made is None or not isinstance(call, ast.Call) or call.args or call.keywords:
        return None
    for node in nodes_of_file(made.path):
        if not isinstance(node, ast.FunctionDef) or node.name != ast.unparse(call.func):
            continue
        if any(isinstance(default, LITERALS) for default in node.args.defaults):
            return made._replace(line=node.lineno)
    return None
