"""Repairs fm39: the values of all replicas are reduced to one, by their sum or their mean."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.blame import name_of
from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs

NUMBERS = "float", "int"


@repairs("fm39", keeps_training=True)
def reduce_to_one(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    statement = source.simple_statement(line)
    if statement is None:
        return
    means = [each for each in source.of(ast.Constant, statement) if each.value == "MEAN"]
    ops = [each for each in source.of(ast.Attribute, statement) if each.attr == "MEAN"]
    if means or ops:
        yield [source.replace(each, '"SUM"') for each in (*means, *ops)]
    taken = [*taken_from_one(source, statement)] or [*given_to_host(source, statement)]
    for strategy in source.strategies(statement)[:1]:
        for kind in ("SUM", "MEAN"):
            for one, values in taken:
                reduced = f'{strategy}.reduce("{kind}", {source.code(values)}, axis=None)'
                yield [source.replace(one, reduced)]


def taken_from_one(source: Source, statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yields what takes the value of one replica, with the values of all."""
    for each in source.of(ast.Subscript, statement):
        match each.value:
            case ast.Attribute(attr="values", value=values):
                yield each, values
            case ast.Call(args=[values]) if name_of(each.value.func).endswith("local_results"):
                yield each, values


def given_to_host(source: Source, statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yields what becomes a Python number."""
    for call in source.of(ast.Call, statement):
        if name_of(call.func) in NUMBERS and len(call.args) == 1:
            yield call.args[0], call.args[0]
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "numpy":
            yield call.func.value, call.func.value
