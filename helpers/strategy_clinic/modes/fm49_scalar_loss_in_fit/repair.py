"""Repairs fm49: a loss takes the mean over the last axis, and returns one value for each example."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs


@repairs("fm49")
def value_for_each_example(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    statement = source.simple_statement(line)
    if isinstance(statement, ast.Return) and isinstance(statement.value, ast.Name):
        statement = source.assignment(statement.value.id, source.function(statement))
    means = source.calls("reduce_mean", statement) if statement else []
    whole = [call for call in means if len(call.args) == 1 and not call.keywords]
    if whole and len(whole) == len(means):
        yield [source.add_argument(call, "axis=-1") for call in whole]
