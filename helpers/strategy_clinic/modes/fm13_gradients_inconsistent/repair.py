"""Repairs fm13: a gradient that is None becomes zeros."""

import ast

from ...examiner.blame import keyword
from ...examiner.repair import Source, Ways, repairs_statement

ZEROS = "unconnected_gradients=tf.UnconnectedGradients.ZERO"


@repairs_statement("fm13")
def zeros_for_none(source: Source, statement: ast.stmt) -> Ways:
    calls = source.calls("gradient", statement)
    if len(calls) != 1 or keyword(calls[0], "unconnected_gradients") is not None:
        return
    (call,) = calls
    yield [source.add_argument(call, ZEROS)]
    weights = call.args[1] if len(call.args) == 2 and not call.keywords else None
    is_whole = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    if is_whole and isinstance(
        weights, (ast.Name, ast.Attribute)
    ):  # the tape cannot do it for variables of Keras 3
        pairs = f"zip({source.code(call)}, {source.code(weights)})"
        yield [source.replace(call, f"[tf.zeros(w.shape) if g is None else g for g, w in {pairs}]")]
