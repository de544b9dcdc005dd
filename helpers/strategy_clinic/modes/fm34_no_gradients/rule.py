"""Blames, for fm34, where the loss comes from of which a gradient is None."""

import ast

from ...examiner import blame
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack

# Operations without a derivative.
ENDS = "round", "rint", "floor", "ceil", "argmax", "cast", "numpy_function", "stop_gradient"


@blames("fm34")
def loss_without_gradient(recording: Recording, stack: Stack) -> Stack:
    located = recording.last_incomplete_gradient or stack
    if located and "fit" in blame.called_at(located[0]):
        return (*line_of_loss(located), *located)
    return blame.from_argument(located, ("gradient",))


def line_of_loss(stack: Stack) -> Stack:
    """Returns the line with such an operation in the function that is given to `compile` as its loss; none if there is none."""
    nodes = blame.nodes_of_file(stack[0].path)
    calls = [each for each in nodes if isinstance(each, ast.Call)]
    given = [
        keyword.value.id
        for call in calls
        for keyword in call.keywords
        if keyword.arg == "loss" and isinstance(keyword.value, ast.Name)
    ]
    losses = [each for each in nodes if isinstance(each, ast.FunctionDef) and each.name in given]
    return tuple(
        stack[0]._replace(line=call.lineno, function=loss.name)
        for loss in losses
        for call in blame.calls_in(loss)
        if blame.called_name(call) in ENDS
    )[:1]
