"""An edit that several modes share: what is missed after a restart is given to the call that says what is saved."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from .blame import name_of
from .edits import Edit
from .repair import Source
from .repair_optimizers import OPTIMIZERS

Holder = ast.Call | ast.Dict


def hold(source: Source, line: int, missed: Iterable[str]) -> Iterator[Sequence[Edit]]:
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


def alike(source: Source, holders: list[Holder]) -> list[Holder]:
    """Returns the other checkpoints of the function that have the same parts: one may be read from what another saves."""
    return [
        call
        for each in holders
        for call in source.calls("Checkpoint", source.function(each))
        if call is not each and is_checkpoint(each) and {*values_in(call)} == {*values_in(each)}
    ]


def made_elsewhere(source: Source, holders: list[Holder]) -> Iterator[Sequence[Edit]]:
    """Yields what another statement makes: in place of a checkpoint with a part of it, or of what is made for the file alone."""
    made = [(each.value, source.code(each.targets[0])) for each in source.of(ast.Assign)]
    calls = [(value, name) for value, name in made if isinstance(value, ast.Call)]
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


def is_checkpoint(holder: Holder) -> bool:
    return isinstance(holder, ast.Call) and name_of(holder.func) == "Checkpoint"


def added(source: Source, holder: Holder, name: str, value: str) -> Edit | None:
    """Returns the edit that gives an object to a call or a dict; none if it has one of this name."""
    if name in values_in(holder):
        return None
    if isinstance(holder, ast.Call):
        return source.add_argument(holder, f"{name}={value}")
    last = source.end(holder.values[-1])
    return Edit(last, last, f', "{name}": {value}')


def made_at(source: Source, lines: Iterable[int], line: int) -> Iterator[str]:
    """Yields what the statements of these lines make, as code that the statement of another line can use."""
    statement = source.statement(line)
    for each in lines:
        made = source.statement(each)
        for target in made.targets if isinstance(made, ast.Assign) else ():
            is_single = isinstance(target, ast.Name | ast.Attribute)
            if statement and is_single and source.can_see(statement, target):
                yield source.code(target)


def made_by(source: Source, ends: str, line: int) -> Iterator[str]:
    """Yields what is made by a call whose name has this word, above the line or in another method of the class."""
    lines = [
        each.lineno
        for each in source.of(ast.Assign)
        if isinstance(each.value, ast.Call) and ends in source.code(each.value.func).lower()
    ]
    yield from made_at(source, lines, line)
