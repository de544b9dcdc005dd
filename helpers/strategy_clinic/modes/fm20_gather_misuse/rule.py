"""Blames, for fm20, the line that ends the step which is given to `run`."""

import ast

from ...examiner import blame
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Frame, Stack


@blames("fm20")
def end_of_step(recording: Recording, stack: Stack) -> Stack:
    found = blame.from_return(stack)
    return blame.from_return(into_called(stack)) if found == stack else found


def into_called(stack: Stack) -> Stack:
    """Puts the line that calls `run` first, if it is in a function that is called here: a traced one has left no frame."""
    for name in blame.called_at(stack[0]) if stack else []:
        for node in blame.nodes_of_file(stack[0].path):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                runs = [each for each in blame.calls_in(node) if blame.called_name(each) == "run"]
                if runs:
                    return (Frame(stack[0].path, runs[0].lineno, name), *stack)
    return stack
