"""Edits that several modes share: what a replica adds up or averages becomes that of all replicas, or is weighted."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from .blame import MEANS, SUMS, name_of
from .edits import Edit
from .repair import Source

CONTEXT = "tf.distribute.get_replica_context()"
SUMMED = f'{CONTEXT}.all_reduce("SUM", {{0}})'
REPLICAS = "tf.distribute.get_strategy().num_replicas_in_sync"
GATHERED = f"{CONTEXT}.all_gather({{0}}, axis=0)"
DIVISIONS = "divide_no_nan", "divide"


def quotient(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Returns what is divided, and by what, by an operator or a function."""
    match node:
        case ast.BinOp(op=ast.Div(), left=left, right=right):
            return left, right
        case ast.Call(args=[left, right]) if name_of(node.func) in DIVISIONS:
            return left, right
    return None


def quotients(source: Source, within: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    nodes: list[ast.expr] = [*source.of(ast.BinOp, within), *source.of(ast.Call, within)]
    return [found for each in nodes if (found := quotient(each))]


def ratios_of_all(source: Source, function: ast.AST) -> list[Edit]:
    """Returns the edits by which a function divides the sums of all replicas by those of all of them."""
    sums: dict[ast.Call, None] = {}
    for sides in quotients(source, function):
        above, below = (sums_in(source, side) for side in sides)
        sums |= dict.fromkeys([*above, *below] if below else [])
    return [source.replace(each, SUMMED.format(source.code(each))) for each in sums]


def sums_in(source: Source, side: ast.expr) -> list[ast.Call]:
    values = [side, *(source.resolved(each) for each in source.of(ast.Name, side))]
    return [call for value in values for call in source.over_all(SUMS, value)]


def means_of_all(source: Source, function: ast.AST) -> list[Edit]:
    """Returns the edits by which a function takes its means over the examples of all replicas."""
    means = source.over_all(MEANS, function)
    return [
        source.replace(each.args[0], GATHERED.format(source.code(each.args[0]))) for each in means
    ]


def divided_by_all(source: Source, mean: ast.Call) -> Edit:
    """Returns the edit that makes a mean of what a replica chooses its share of the mean of all: by the number of all."""
    values = source.code(mean.args[0])
    count = SUMMED.format(f"tf.cast(tf.size({values}), tf.float32)")
    return source.replace(mean, f"(tf.reduce_sum({values}) / {count})")


def run_by_replicas(source: Source, caller: ast.AST) -> list[ast.FunctionDef]:
    """Returns the functions that a function gives to `run`, those of its class if there are others of the name."""
    named = {name_of(call.args[0]) for call in source.calls("run", caller) if call.args}
    functions = [each for each in source.of(ast.FunctionDef) if each.name in named]
    own = [each for each in functions if source.class_of(each) is source.class_of(caller)]
    return own or functions


def returned(source: Source, function: ast.FunctionDef) -> Iterator[ast.expr]:
    """Yields what a function returns, alone or in a tuple or dict."""
    for each in source.of(ast.Return, function):
        if source.function(each) is function:
            values = getattr(each.value, "elts", getattr(each.value, "values", [each.value]))
            yield from filter(None, values)


def words_for_mean(source: Source, reductions: Iterable[ast.Call]) -> list[ast.expr]:
    """Returns the words by which calls of `reduce` take the mean."""
    return [each for call in reductions for each in source.of(ast.expr, call) if is_mean(each)]


def is_mean(node: ast.expr) -> bool:
    """Tells whether this is the word by which a reduction takes the mean."""
    return "MEAN" in (getattr(node, "value", ""), getattr(node, "attr", ""))
