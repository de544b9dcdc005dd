"""Blames, for fm40, the line that made a graph of a function which the step calls."""

import ast

from ...examiner.blame import called_at, names_in, nodes_of_file
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack


@blames("fm40")
def nested_function(recording: Recording, stack: Stack) -> Stack:
    for i, frame in enumerate(stack):
        called = called_at(frame)
        if "run" in called:
            break
        lines = [line for name in called for line in traced_at(frame.path, name)]
        if lines:
            return (frame._replace(line=lines[0]), *stack[i:])
    return stack


def traced_at(path: str, name: str) -> list[int]:
    """Returns the lines where a function of this name is given to `tf.function`, in an assignment or by a decorator."""
    lines = []
    for node in nodes_of_file(path):
        if isinstance(node, ast.Assign) and is_tf_function(node.value):
            lines += [node.lineno] if name in names_in(node.targets[0]) else []
        if isinstance(node, ast.FunctionDef) and node.name == name:
            lines += [each.lineno for each in node.decorator_list if is_tf_function(each)]
    return lines


def is_tf_function(node: ast.expr) -> bool:
    """Tells whether this is `tf.function`, or a call of it."""
    node = node.func if isinstance(node, ast.Call) else node
    return isinstance(node, ast.Attribute) and node.attr == "function"
