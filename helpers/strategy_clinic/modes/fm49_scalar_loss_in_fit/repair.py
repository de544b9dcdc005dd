"""Repairs fm49: a loss takes the mean over the last axis, and returns one value for each example."""

import ast

from ...examiner.blame import MEANS
from ...examiner.repair import Source, Ways, repairs_statement


@repairs_statement("fm49", keeps_training=True)
def value_for_each_example(source: Source, statement: ast.stmt) -> Ways:
    """Yields the mean over the last axis, and what the mean is taken of, which may have one value for each already."""
    loss: ast.AST | None = statement
    if isinstance(loss, ast.Return) and isinstance(loss.value, ast.Name):
        loss = source.assigned(loss.value.id, source.function(loss))
    means = source.calls(MEANS, loss) if loss else []
    whole = source.over_all(MEANS, loss) if loss else []
    if whole and len(whole) == len(means):
        yield [source.add_argument(call, "axis=-1") for call in whole]
        yield [source.replace(whole[0], source.code(whole[0].args[0]))]
