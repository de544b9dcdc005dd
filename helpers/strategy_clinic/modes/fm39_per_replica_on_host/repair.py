"""Repairs fm39: what is taken of one replica, or as a mean of shares, becomes the sum of all replicas, or their mean."""

import ast

from ...examiner.blame import name_of
from ...examiner.repair import Source, Ways, repairs_statement
from ...examiner.repair_sums import words_for_mean


@repairs_statement("fm39", keeps_training=True)
def reduce_all(source: Source, statement: ast.stmt) -> Ways:
    reductions = source.calls("reduce", statement)
    means = words_for_mean(source, reductions)
    if means:
        yield [source.replace(each, '"SUM"') for each in means]
    taken: list[tuple[ast.expr, str, str]] = [
        (part, *found)
        for part in source.of(ast.Subscript, statement)
        for found in of_one_replica(source, part)
    ]
    given = [] if taken or reductions else given_to_host(source, statement)
    taken += [
        (each, name, source.code(each)) for each in given for name in strategies(source, each)
    ]
    for kind in "SUM", "MEAN":
        for part, strategy, values in taken:
            yield [source.replace(part, f'{strategy}.reduce("{kind}", {values}, axis=None)')]


def of_one_replica(source: Source, part: ast.Subscript) -> list[tuple[str, str]]:
    """Returns the strategy and the values, as code, of which a subscript takes that of one replica; nothing for another."""
    match part.value:
        case ast.Call(
            func=ast.Attribute(value=strategy, attr="experimental_local_results"), args=[value]
        ):
            return [(source.code(strategy), source.code(value))]
        case ast.Attribute(value=value, attr="values"):
            return [(each, source.code(value)) for each in strategies(source, part)]
    return []


def given_to_host(source: Source, statement: ast.stmt) -> list[ast.expr]:
    """Returns what a statement makes a number of Python of, or an array of NumPy."""
    calls = source.of(ast.Call, statement)
    given = [call.args[0] for call in calls if name_of(call.func) == "float" and call.args]
    methods = [call.func for call in source.calls("numpy", statement)]
    return [*given, *(each.value for each in methods if isinstance(each, ast.Attribute))]


def strategies(source: Source, node: ast.expr) -> list[str]:
    statement = source.statement(node.lineno)
    return source.strategies(statement)[:1] if statement else []
