"""Repairs fm44: the root of a mean of squares is a metric object, which adds up over all replicas."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.blame import keyword, spans
from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs

ROOT_MEAN_SQUARED = "sqrt(reduce_mean(square(Sub)))"
METRIC = "tf.keras.metrics.RootMeanSquaredError()"


@repairs("fm44")
def metric_object(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    for call in source.calls("compile"):
        metrics = keyword(call, "metrics")
        if isinstance(metrics, ast.List) and spans(call, line):
            known = [each for each in metrics.elts if formula(source, each) == ROOT_MEAN_SQUARED]
            if known:
                yield [source.replace(each, METRIC) for each in known]


def formula(source: Source, metric: ast.expr) -> str:
    """Returns what a function of this file returns, as the names of its calls; nothing if it does anything else."""
    functions = [each for each in source.of(ast.FunctionDef) if each.name == source.code(metric)]
    body = functions[0].body if len(functions) == 1 else []
    only = body[0] if len(body) == 1 else None
    return calls_of(only.value) if isinstance(only, ast.Return) else ""


def calls_of(node: ast.expr | None) -> str:
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return f"{name}({calls_of(node.args[0])})"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return "Sub" if all(isinstance(side, ast.Name) for side in (node.left, node.right)) else ""
    return ""
