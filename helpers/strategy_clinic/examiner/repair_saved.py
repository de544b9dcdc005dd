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
    yield from as_another(source, holders)
    yield from made_once(source, holders)
    for value in dict.fromkeys(missed):
        name = value.rpartition(".")[2]
        edit = added(source, holders[0], name, value) if holders else None
        if edit:
            yield [edit]


def as_another(source: Source, holders: list[Holder]) -> Iterator[Sequence[Edit]]:
    """Yields the checkpoint that another statement makes, in place of one that has a part of what it has."""
    for made in source.of(ast.Assign):
        for call in [
            each for each in holders if isinstance(each, ast.Call) and is_checkpoint(each)
        ]:
            whole = made.value if isinstance(made.value, ast.Call) else None
            if whole and is_checkpoint(whole) and names_in(call) < names_in(whole):
                yield [source.replace(call, source.code(made.targets[0]))]


def made_once(source: Source, holders: list[Holder]) -> Iterator[Sequence[Edit]]:
    """Yields the object that another statement makes by the same function, in place of one that is made for the file alone."""
    given = [each for holder in holders[:1] for each in values_of(holder)]
    for value in [each for each in given if isinstance(each, ast.Call)]:
        for made in source.of(ast.Assign):
            if isinstance(made.value, ast.Call) and is_alike(made.value, value):
                yield [source.replace(value, source.code(made.targets[0]))]


def is_alike(one: ast.Call, other: ast.Call) -> bool:
    return one is not other and ast.dump(one.func) == ast.dump(other.func)


def values_of(holder: Holder) -> list[ast.expr]:
    if isinstance(holder, ast.Call):
        return [word.value for word in holder.keywords]
    return holder.values


def names_in(call: ast.Call) -> set[str | None]:
    return {word.arg for word in call.keywords}


def holders_in(source: Source, statement: ast.stmt) -> list[Holder]:
    """Returns the calls and dicts of a statement that give names to objects, a checkpoint first."""
    dicts = [each for each in source.of(ast.Dict, statement) if each.keys and all(each.keys)]
    named = [each for each in source.of(ast.Call, statement) if each.keywords]
    named = [each for each in named if not OPTIMIZERS.search(source.code(each.func))]
    return sorted([*named, *dicts], key=lambda each: not is_checkpoint(each))


def is_checkpoint(holder: Holder) -> bool:
    return isinstance(holder, ast.Call) and name_of(holder.func) == "Checkpoint"


def added(source: Source, holder: Holder, name: str, value: str) -> Edit | None:
    """Returns the edit that gives an object to a call or a dict; none if it has one of this name."""
    if isinstance(holder, ast.Call):
        is_known = any(word.arg == name for word in holder.keywords)
        return None if is_known else source.add_argument(holder, f"{name}={value}")
    is_known = any(isinstance(each, ast.Constant) and each.value == name for each in holder.keys)
    last = source.end(holder.values[-1])
    return None if is_known else Edit(last, last, f', "{name}": {value}')


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
