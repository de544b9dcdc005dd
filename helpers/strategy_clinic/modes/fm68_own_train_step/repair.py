"""Repairs fm68: what a step reports is multiplied by the number of replicas, or kept by a metric that `fit` reports."""

import ast
from collections.abc import Iterator

from ...examiner.blame import functions_named
from ...examiner.repair import Source, Ways, repairs_statement
from ...examiner.repair_sums import REPLICAS

MADE = 'self.reported_loss = tf.keras.metrics.Mean(name="loss")'
INIT = (
    "def __init__(self, *args, **kwargs):",
    "    super().__init__(*args, **kwargs)",
    f"    {MADE}",
    "",
)


@repairs_statement("fm68", compound=True)
def report_whole_loss(source: Source, statement: ast.stmt) -> Ways:
    if " by the number of replicas" in source.said:
        is_part = "that is divided" in source.said
        for each in reported(source, statement):
            yield [source.replace(each, scaled(source, each, is_part))]
    elif "updates the metric of the loss" in source.said:
        yield from one_by_one(source, statement)
    else:
        for value in reported(source, statement):
            yield from kept_by_metric(source, statement, value)


def reported(source: Source, statement: ast.stmt) -> Iterator[ast.expr]:
    """Yields what a statement gives a metric, or puts into a dict as a loss."""
    for call in source.calls("update_state", statement):
        yield from call.args[:1]
    for each in source.of(ast.Dict, statement):
        for key, value in zip(each.keys, each.values):
            if isinstance(key, ast.Constant) and str(key.value).endswith("loss"):
                yield value


def scaled(source: Source, value: ast.expr, is_part: bool) -> str:
    """Returns the code of a value times the number of replicas, or without this factor."""
    match value:
        case ast.BinOp(left=left, op=ast.Mult(), right=right) if not is_part:
            rest = [each for each in (left, right) if "num_replicas" not in source.code(each)]
            if len(rest) == 1:
                return source.code(rest[0])
    code = source.code(value)
    is_simple = isinstance(value, ast.Name | ast.Attribute | ast.Call)
    return f"{code if is_simple else f'({code})'} {'*' if is_part else '/'} {REPLICAS}"


def kept_by_metric(source: Source, statement: ast.stmt, value: ast.expr) -> Ways:
    """Yields a metric that is named as the loss, for shares of it and for means, and what makes it."""
    own = source.class_of(statement)
    if own is None:
        return
    made = functions_named(own.body, "__init__")
    begun = [each for init in made for each in init.body if "super()" in source.code(each)]
    if made and not begun:
        return
    makes = (
        source.insert_after(begun[0], MADE) if made else source.insert_before(own.body[0], *INIT)
    )
    result = source.replace(value, "self.reported_loss.result()")
    for code in (scaled(source, value, is_part=True), source.code(value)):
        update = source.insert_before(statement, f"self.reported_loss.update_state({code})")
        yield [makes, update, result]


def one_by_one(source: Source, statement: ast.stmt) -> Ways:
    """Yields an update of the metric of the loss with the value of which the step computes the gradients."""
    for call in source.calls("update_state", statement):
        for computed in source.calls("gradient", source.function(statement)):
            if isinstance(call.func, ast.Attribute) and computed.args:
                metric, loss = source.code(call.func.value), source.code(computed.args[0])
                indent = source.indent(statement)
                for share in (f"{loss} * {REPLICAS}", loss):
                    lines = [
                        f'if {metric}.name == "loss":',
                        f"{indent}    {metric}.update_state({share})",
                        f"{indent}else:",
                        f"{indent}    {source.code(statement)}",
                    ]
                    yield [source.replace(statement, "\n".join(lines))]
