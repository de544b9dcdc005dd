"""Repairs fm05: every checkpoint of the file gets the variable that it lacks."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.blame import keyword
from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs


@repairs("fm05")
def add_to_checkpoints(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    statement = source.simple_statement(line)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    target = statement.targets[0]
    checkpoints = source.calls("Checkpoint")
    if not isinstance(target, ast.Name) or not checkpoints:
        return
    function = source.function(statement)
    visible = all(
        source.function(call) is function and call.lineno > statement.lineno for call in checkpoints
    )
    if visible and not any(keyword(call, target.id) for call in checkpoints):
        yield [source.add_argument(call, f"{target.id}={target.id}") for call in checkpoints]
