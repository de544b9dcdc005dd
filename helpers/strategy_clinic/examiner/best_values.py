"""Finds the name of Python in which a program keeps its best value, and where this name gets its first value.

A program compares each new value with the best one, and saves its model if the new value is better. What is only in a name of
Python, and in no file, begins anew after a restart.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from ..observer.events import Frame
from .blame import (
    called_name,
    calls_in,
    functions_around,
    name_of,
    names_in,
    nodes_of_file,
    nodes_under,
    parameters,
    spans,
)

SIZES = ast.Lt | ast.Gt | ast.LtE | ast.GtE
# Functions that compare by size, such as `np.less`; `monitor_op` is what Keras's callbacks call theirs.
COMPARISONS = {"less", "greater", "less_equal", "greater_equal", "lt", "gt", "le", "ge"}
COMPARISONS |= {"monitor_op"}
NUMBERS = {"float", "constant", "float32", "float64"}  # functions that return their argument
INFINITIES = ("inf", "infinity", "maxsize", "max")
JUMPS = ast.Return | ast.Continue | ast.Break | ast.Raise
# What gets a list or a dictionary and leaves it as it is.
READERS = {"print", "format", "min", "max", "len", "sum", "mean"}
Pair = tuple[ast.expr, ast.expr]  # a target and its value


def best_value(frame: Frame) -> tuple[str, Frame] | None:
    """Returns the name of the best value which decides that a line is executed, and where it gets its first value.

    None if it gets a value that is no constant anywhere else: the program may have restored it.
    """
    nodes = nodes_of_file(frame.path)
    for condition in conditions_of(frame.line, nodes):
        for side in compared_sides(condition, nodes):
            firsts = first_values(side, frame, nodes)
            if firsts:
                text = name_of(side) or ast.unparse(side)
                return text, frame._replace(line=firsts[0].lineno)
    return None


def first_values(side: ast.expr, frame: Frame, nodes: Sequence[ast.AST]) -> list[ast.expr]:
    """Returns the constants that one side of a comparison begins with, if nothing restores it."""
    match side:
        case ast.Name() | ast.Attribute():
            return first_numbers(side, frame, nodes)
        case ast.Subscript(value=holder, slice=ast.Constant(value=str(key))):
            return first_numbers_in(holder, key, nodes)
        case ast.Call(args=[ast.Name() | ast.Attribute() as values]) if is_extreme(side):
            return first_lists(values, nodes)
    return []


# Conditions


def conditions_of(line: int, nodes: Sequence[ast.AST]) -> Iterator[ast.expr]:
    """Returns the conditions that decide whether a line is executed: it is in a branch, or after one that leaves."""
    for node in nodes:
        if isinstance(node, ast.If) and is_within(line, [*node.body, *node.orelse]):
            yield node.test
        for statements in blocks_of(node):
            if is_within(line, statements):
                yield from (each.test for each in statements if is_left(each, line))


def blocks_of(node: ast.AST) -> list[list[ast.stmt]]:
    blocks = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
    return [each for each in blocks if isinstance(each, list)]


def is_left(statement: ast.stmt, line: int) -> TypeGuard[ast.If]:
    """Tells whether this is a branch above a line that does not go on to it."""
    is_above = (statement.end_lineno or statement.lineno) < line
    return is_above and isinstance(statement, ast.If) and isinstance(statement.body[-1], JUMPS)


def is_within(line: int, statements: Sequence[ast.stmt]) -> bool:
    return any(spans(each, line) for each in statements)


def compared_sides(test: ast.expr, nodes: Sequence[ast.AST]) -> list[ast.expr]:
    """Returns what a condition compares by size; it may be the name of a comparison."""
    named = [
        each.value
        for each in nodes
        if isinstance(each, ast.Assign) and {*map(name_of, each.targets)} & {*names_in(test)}
    ]
    return [
        side for each in (test, *named) for node in nodes_under(each) for side in sides_of(node)
    ]


def sides_of(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Call) and called_name(node) in COMPARISONS:
        return node.args
    if not isinstance(node, ast.Compare):
        return []
    sides = [node.left, *node.comparators]
    return sides if isinstance(node.ops[0], SIZES) else list(filter(is_extreme, sides))


def is_extreme(node: ast.expr) -> TypeGuard[ast.Call]:
    """Tells whether this is the least or the greatest value of a list."""
    return (
        isinstance(node, ast.Call) and called_name(node) in ("min", "max") and len(node.args) == 1
    )


# A number in a name


def first_numbers(
    side: ast.Name | ast.Attribute, frame: Frame, nodes: Sequence[ast.AST]
) -> list[ast.expr]:
    """Returns the constants that a name begins with, if all else that it gets is a better value, in place of a worse one."""
    name = name_of(side)
    values = [value for target, value in all_assigned(nodes) if name_of(target) == name]
    stores = stores_of(name, nodes)
    is_given = any(name in parameters(function) for function in functions_around(frame))
    if len(values) != len(stores) or is_given or is_set_unnamed(side, nodes):
        return []
    return firsts_of(values, name, nodes)


def firsts_of(values: list[ast.expr], name: str, nodes: Sequence[ast.AST]) -> list[ast.expr]:
    firsts = [each for each in values if is_first_value(each)]
    others = [each for each in values if each not in firsts]
    is_kept = others and all(is_better_value(each, name, nodes) for each in others)
    return firsts if is_kept else []


def stores_of(name: str, nodes: Sequence[ast.AST]) -> list[ast.AST]:
    """Returns where a name gets a value: not where only its type is told."""
    typed = [each.target for each in nodes if isinstance(each, ast.AnnAssign) and not each.value]
    stores = [each for each in nodes if is_store(each) and name_of(each) == name]
    return [each for each in stores if each not in typed]


def is_set_unnamed(side: ast.expr, nodes: Sequence[ast.AST]) -> bool:
    """Tells whether code gives values to attributes that it does not name, of the object that has this one."""
    if not isinstance(side, ast.Attribute):
        return False  # no attribute
    changed = [each for node in nodes if (each := object_changed(node))]
    owner, classes = ast.unparse(side.value), classes_around(side, nodes)
    made = {ast.unparse(t) for t, value in all_assigned(nodes) if called_in(value) in classes}
    return any(ast.unparse(each) in {owner, *made} for each in changed)


def object_changed(node: ast.AST) -> ast.expr | None:
    """Returns the object whose attributes, whichever these are, code can change."""
    match node:
        case ast.Call(args=[given, *_]) if called_name(node) in ("setattr", "vars"):
            return given
        case ast.Attribute(value=owner, attr="__dict__"):
            return owner
    return None


def classes_around(side: ast.expr, nodes: Sequence[ast.AST]) -> set[str]:
    kinds = [each for each in nodes if isinstance(each, ast.ClassDef)]
    return {each.name for each in kinds if spans(each, side.lineno)}


def called_in(value: ast.expr) -> str:
    return called_name(value) if isinstance(value, ast.Call) else ""


def all_assigned(nodes: Sequence[ast.AST]) -> list[Pair]:
    return [pair for node in nodes for pair in assigned(node)]


def assigned(node: ast.AST) -> list[Pair]:
    """Returns targets and values of an assignment; of several names, each with its own."""
    if isinstance(node, ast.AnnAssign) and node.value:
        return [(node.target, node.value)]
    if not isinstance(node, ast.Assign):
        return []
    return [
        pair
        for target in node.targets
        for pair in (
            zip(target.elts, node.value.elts)
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            else [(target, node.value)]
        )
    ]


def is_store(node: ast.AST) -> TypeGuard[ast.Name | ast.Attribute | ast.Subscript]:
    kinds = ast.Name | ast.Attribute | ast.Subscript
    return isinstance(node, kinds) and isinstance(node.ctx, ast.Store)


def is_first_value(value: ast.expr) -> bool:
    """Tells whether this is a number, or infinity in one of its spellings."""
    match value:
        case ast.UnaryOp(operand=operand):
            return is_first_value(operand)
        case ast.IfExp(body=one, orelse=other):
            return is_first_value(one) and is_first_value(other)
        case ast.Constant():
            return True
        case ast.Attribute(attr=name):
            return name.lower() in INFINITIES
        case ast.Call(args=[argument]) if called_name(value) in NUMBERS:
            return is_first_value(argument)
    return False


def is_better_value(value: ast.expr, name: str, nodes: Sequence[ast.AST]) -> bool:
    """Tells whether a value is given only where it is better than the last one, by a condition or by `max` and `min`.

    A sum is none: a program that saves at times keeps the next one so.
    """
    if isinstance(value, ast.BinOp):
        return False
    chooses = [call for call in calls_in(value) if called_name(call) in ("max", "min")]
    if any(name in map(key_or_name, call.args) for call in chooses):
        return True
    return any(
        name in map(key_or_name, compared_sides(condition, nodes))
        for condition in conditions_of(value.lineno, nodes)
    )


def key_or_name(node: ast.expr) -> str:
    match node:
        case ast.Subscript(slice=ast.Constant(value=str(key))):
            return key
    return name_of(node)


# A number in a dictionary, and a list of numbers


def first_numbers_in(held: ast.expr, key: str, nodes: Sequence[ast.AST]) -> list[ast.expr]:
    """Returns the constants that a key of a dictionary begins with."""
    pairs, holder = all_assigned(nodes), name_of(held)
    made = [value for target, value in pairs if name_of(target) == holder]
    if not made or not is_known(held, made, nodes) or not all(map(is_display, made)):
        return []
    values = [value for each in made for value in values_of(each, key)]
    set_later = [
        value
        for target, value in pairs
        if isinstance(target, ast.Subscript)
        and (name_of(target.value), key_or_name(target)) == (holder, key)
    ]
    return firsts_of([*values, *set_later], key, nodes)


def is_display(value: ast.expr) -> bool:
    """Tells whether a dictionary is written with all of its keys."""
    match value:
        case ast.Dict(keys=keys):
            return None not in keys
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=words):
            return all(word.arg for word in words)
    return False


def values_of(display: ast.expr, key: str) -> list[ast.expr]:
    match display:
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values)
            return [v for k, v in pairs if isinstance(k, ast.Constant) and k.value == key]
        case ast.Call(keywords=words):
            return [word.value for word in words if word.arg == key]
    return []


def first_lists(held: ast.expr, nodes: Sequence[ast.AST]) -> list[ast.expr]:
    """Returns the empty lists that a list of values begins with, if values are only appended to it."""
    made = [value for target, value in all_assigned(nodes) if name_of(target) == name_of(held)]
    is_empty = all(ast.unparse(each) in ("[]", "list()") for each in made)
    return made if is_empty and is_known(held, made, nodes) else []


def is_known(held: ast.expr, made: list[ast.expr], nodes: Sequence[ast.AST]) -> bool:
    """Tells whether a name of a list or dictionary gets only these values, and nothing else may fill what it has."""
    name = name_of(held)
    stores = stores_of(name, nodes)
    calls = [each for each in nodes if isinstance(each, ast.Call)]
    given = [
        call
        for call in calls
        if name in map(name_of, [*call.args, *(word.value for word in call.keywords)])
    ]
    is_read = all(called_name(call) in READERS for call in given)
    methods = {
        call.func.attr
        for call in calls
        if isinstance(call.func, ast.Attribute) and name_of(call.func.value) == name
    }
    is_filled = methods - {"append", "get", "items", "keys", "values"}
    return (
        len(stores) == len(made) and is_read and not is_filled and not is_set_unnamed(held, nodes)
    )
