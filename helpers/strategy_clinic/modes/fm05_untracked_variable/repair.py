"""Repairs fm05: a checkpoint gets the variable that it lacks, or the object that has this variable."""

import ast
import re
from collections.abc import Iterator, Sequence

from ...examiner.blame import keyword, name_of
from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs
from ...examiner.repair_saved import hold, made_at
from ...examiner.repair_values import keep_number


@repairs("fm05", keeps_training=True)
def save_what_is_missed(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    yield from keep_number(source, line)
    yield from add_to_checkpoints(source, line)
    yield from hold(source, line, [*made_at(source, source.told, line), *parts(source, line)])


def parts(source: Source, line: int) -> Iterator[str]:
    """Yields what calls make, what the finding names and the last first: one of these may have what is missed."""
    made = [each for each in source.of(ast.Assign) if isinstance(each.value, ast.Call)]
    made.sort(key=lambda each: (is_named(source, each), each.lineno), reverse=True)
    yield from made_at(source, [each.lineno for each in made], line)


def is_named(source: Source, made: ast.Assign) -> bool:
    """Tells whether the finding names a class of which an object is made, or the name that it gets."""
    makers = [call.func for call in source.of(ast.Call, made)]
    named = map(name_of, [*makers, *made.targets])
    return any(re.search(rf"\b{re.escape(each)}\b", source.said) for each in named if each)


def add_to_checkpoints(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    """Yields a repair of all checkpoints of the file for each variable that may be meant, where the line has a checkpoint."""
    statement = source.simple_statement(line)
    checkpoints = source.calls("Checkpoint")
    if statement is None or not checkpoints:
        return
    is_checkpoint = any(call in ast.walk(statement) for call in checkpoints)
    for made in variables_above(source, statement) if is_checkpoint else [statement]:
        name = name_given(made)
        visible = all(
            source.function(call) is source.function(made) and call.lineno > made.lineno
            for call in checkpoints
        )
        if name and visible and not any(keyword(call, name) for call in checkpoints):
            yield [source.add_argument(call, f"{name}={name}") for call in checkpoints]


def variables_above(source: Source, statement: ast.stmt) -> list[ast.stmt]:
    """Returns the statements above, in the same function, that make a variable, the last one first."""
    made = [
        each
        for each in source.of(ast.Assign)
        if each.value in source.calls("Variable")
        if each.lineno < statement.lineno and source.function(each) is source.function(statement)
    ]
    return [*reversed(made)]


def name_given(statement: ast.stmt) -> str:
    """Returns the name that an assignment gives to its value; nothing if that is an attribute or an item."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return ""
