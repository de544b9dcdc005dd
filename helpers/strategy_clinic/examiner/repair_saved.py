"""An edit that several modes share: what is missed after a restart is given to the call that says what is saved."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from .blame import name_of
from .edits import Edit
from .repair import Source


def hold(source: Source, line: int, missed: Iterable[str]) -> Iterator[Sequence[Edit]]:
    """Yields, for each object that may be missed, the edits that let the statement of this line save it."""
    statement = source.simple_statement(line)
    holders = holders_in(source, statement) if statement else []
    for value in dict.fromkeys(missed):
        name = value.rpartition(".")[2]
        edit = added(source, holders[0], name, value) if holders else None
        if edit:
            yield [edit]


def holders_in(source: Source, statement: ast.stmt) -> list[ast.Call | ast.Dict]:
    """Returns the calls and dicts of a statement that give names to objects, a checkpoint first."""
    dicts = [each for each in source.of(ast.Dict, statement) if each.keys and all(each.keys)]
    named = [each for each in source.of(ast.Call, statement) if each.keywords]
    return sorted([*named, *dicts], key=lambda each: not is_checkpoint(each))


def is_checkpoint(holder: ast.Call | ast.Dict) -> bool:
    return isinstance(holder, ast.Call) and name_of(holder.func) == "Checkpoint"


def added(source: Source, holder: ast.Call | ast.Dict, name: str, value: str) -> Edit | None:
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
