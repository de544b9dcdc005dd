"""An edit that several modes share: what is missed after a restart is given to the call that says what is saved."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TypeGuard

from .blame import name_of, targets_in
from .edits import Edit, inserted
from .repair import Binding, Source, Ways
from .repair_optimizers import OPTIMIZERS

Holder = ast.Call | ast.Dict
MOST_PASSED = 3  # calls, each of which passes on the arguments of the one before


def hold(source: Source, line: int, missed: Iterable[str]) -> Ways:
    """Yields, for each object that may be missed, the edits that let the statement of this line save it."""
    statement = source.simple_statement(line)
    holders = holders_in(source, statement) if statement else []
    yield from made_elsewhere(source, holders)
    for value in dict.fromkeys(missed):
        name = value.rpartition(".")[2]
        edits = [added(source, each, name, value) for each in holders[:1]]
        more = [added(source, each, name, value) for each in alike(source, holders[:1])]
        for several in ([*filter(None, edits)], [*filter(None, edits + more)]):
            if several:
                yield several


def hold_variables(source: Source) -> Ways:
    """Yields for each checkpoint the edits that give it all variables that are made above, or by objects that are."""
    lines = [call.lineno for call in source.calls("Variable")]
    for holder in savers(source):
        made = {code.rpartition(".")[2]: code for code in made_at(source, lines, holder.lineno)}
        edits = [added(source, holder, name, code) for name, code in made.items()]
        yield [*filter(None, edits)]


def alike(source: Source, holders: list[Holder]) -> list[Holder]:
    """Returns the other checkpoints of the function that have the same parts: one may be read from what another saves."""
    return [
        call
        for each in holders
        for call in source.calls("Checkpoint", source.function(each))
        if call is not each and is_checkpoint(each) and {*values_in(call)} == {*values_in(each)}
    ]


def made_elsewhere(source: Source, holders: list[Holder]) -> Ways:
    """Yields what another statement makes: in place of a checkpoint with a part of it, or of what is made for the file alone."""
    calls = [(call, source.code(target)) for _, target, call in source.makers()]
    for holder in holders[:1]:
        values = values_in(holder)
        for call, name in calls:
            if is_checkpoint(holder) and is_checkpoint(call) and {*values} < {*values_in(call)}:
                yield [source.replace(holder, name)]
            for value in values.values():
                is_alike = isinstance(value, ast.Call) and same(value.func, call.func)
                if is_alike and value is not call:
                    yield [source.replace(value, name)]


def same(one: ast.expr, other: ast.expr) -> bool:
    return ast.dump(one) == ast.dump(other)


def values_in(holder: Holder) -> dict[str, ast.expr]:
    """Returns the values that a dict or the arguments of a call have by name."""
    if isinstance(holder, ast.Call):
        return {word.arg: word.value for word in holder.keywords if word.arg}
    pairs = zip(holder.keys, holder.values)
    return {str(key.value): each for key, each in pairs if isinstance(key, ast.Constant)}


def holders_in(source: Source, statement: ast.stmt) -> list[Holder]:
    """Returns the calls and dicts of a statement that give names to objects, a checkpoint first."""
    dicts = [each for each in source.of(ast.Dict, statement) if each.keys and all(each.keys)]
    calls = source.of(ast.Call, statement)
    named = [each for each in calls if each.keywords or is_checkpoint(each)]
    named = [each for each in named if not OPTIMIZERS.search(source.code(each.func))]
    return sorted([*named, *dicts], key=lambda each: not is_checkpoint(each))


def places(source: Source, line: int) -> list[int]:
    """Returns a line, after the lines that give arguments to a checkpoint that it makes."""
    calls = source.calls("Checkpoint", source.statement(line))
    return [*(each.lineno for call in calls for each in passed_on(source, call)), line]


def savers(source: Source) -> list[Holder]:
    """Returns the calls and dicts that give objects names in checkpoints, also by a function or class that passes them on."""
    calls = source.calls("Checkpoint")
    passed = [each for call in calls for each in passed_on(source, call)]
    return [*calls, *dict.fromkeys(passed)]


def passed_on(source: Source, call: ast.Call, most: int = MOST_PASSED) -> Iterator[Holder]:
    """Yields where the arguments come from that a call gets by `**`: a dict, or calls of the function that it is in."""
    around = source.function(call)
    given = around.args.kwarg if isinstance(around, ast.FunctionDef) else None
    for value in [word.value for word in call.keywords if word.arg is None and most]:
        if isinstance(around, ast.FunctionDef) and given and given.arg == source.code(value):
            own = source.class_of(around) if around.name == "__init__" else around
            for each in source.calls(getattr(own, "name", "")):
                yield each
                yield from passed_on(source, each, most - 1)
        else:
            yield from dicts(source, source.resolved(value))


def dicts(source: Source, value: ast.expr | None, most: int = MOST_PASSED) -> Iterator[Holder]:
    """Yields the dict that a value is, or those that a function of the file returns that it is a call of."""
    match value:
        case ast.Dict(keys=[_, *_] as keys) if all(keys):
            yield value
        case ast.Call(func=func) if name_of(func) == "dict":
            yield value
        case ast.Call(func=func) if most:
            called = [each for each in source.of(ast.FunctionDef) if each.name == name_of(func)]
            for each in [each for function in called for each in source.of(ast.Return, function)]:
                yield from dicts(source, each.value and source.resolved(each.value), most - 1)


def is_checkpoint(holder: ast.expr) -> TypeGuard[ast.Call]:
    return isinstance(holder, ast.Call) and name_of(holder.func) == "Checkpoint"


def added(source: Source, holder: Holder, name: str, value: str) -> Edit | None:
    """Returns the edit that gives an object to a call or a dict; none if it has one of this name."""
    if name in values_in(holder):
        return None
    if isinstance(holder, ast.Call):
        return source.add_argument(holder, f"{name}={value}")
    return inserted(source.end(holder.values[-1]), f', "{name}": {value}')


def made_at(source: Source, lines: Iterable[int], line: int) -> Iterator[str]:
    """Yields what the statements of these lines make, as code that the statement of another line can use."""
    statement = source.statement(line)
    for each in lines:
        made = source.statement(each)
        if statement and isinstance(made, Binding) and not source.is_later(made, statement):
            for target in targets_in(made):
                if isinstance(target, ast.Name | ast.Attribute):
                    yield from source.as_seen(statement, target)


def optimizers_made(source: Source, line: int) -> Iterator[str]:
    """Yields the optimizers, as their calls are named, that are made above the line or in another method of the class."""
    made = [(each.lineno, source.code(call.func).lower()) for each, _, call in source.makers()]
    yield from made_at(source, [each for each, name in made if "optimizer" in name], line)
