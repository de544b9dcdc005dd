"""Repairs fm44: a metric is an object that adds up over all replicas, or a function of the examples of all of them."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.blame import keyword, spans
from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs

ROOT_MEAN_SQUARED = "sqrt(reduce_mean(square(Sub)))"
METRIC = "tf.keras.metrics.RootMeanSquaredError()"


# Keras 3 also calls a metric where no replica runs, to learn its shape.
WHOLE = (
    "replica = tf.distribute.get_replica_context()",
    "{0} = [replica.all_gather(each, axis=0) if replica else each for each in ({0})]",
)


@repairs("fm44", keeps_training=True)
def over_all_replicas(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    yield from metric_object(source, line)
    yield from function_of_all(source, line)


def function_of_all(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    """Yields a first statement for the functions that `compile` is given as metrics: it gathers what they are given."""
    for call in source.calls("compile"):
        metrics = keyword(call, "metrics")
        names = {each.id for each in source.of(ast.Name, metrics)} if metrics else set[str]()
        functions = [each for each in source.of(ast.FunctionDef) if each.name in names]
        places: list[ast.stmt | ast.expr] = [call, *functions]
        if functions and any(spans(each, line) for each in places):
            yield [gathered(source, each) for each in functions]


def gathered(source: Source, function: ast.FunctionDef) -> Edit:
    first, names = function.body[0], ", ".join(each.arg for each in function.args.args[:2])
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    put = source.insert_after if is_docstring else source.insert_before
    return put(first, *(line.format(names) for line in WHOLE))


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
