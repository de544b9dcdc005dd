"""Repairs fm53: a loop goes over the same dataset, distributed, or what makes the dataset distributes it."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.blame import name_of
from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs


@repairs("fm53", keeps_training=True)
def distribute_dataset(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    statement = source.statement(line)
    dataset = dataset_of(statement) if statement else None
    if statement is None or dataset is None:
        return
    for strategy in source.strategies(statement):
        distributed = f"{strategy}.experimental_distribute_dataset({source.code(dataset)})"
        yield [source.replace(dataset, distributed)]


def dataset_of(statement: ast.stmt) -> ast.expr | None:
    """Returns what a loop goes over, or what a statement makes or returns."""
    match statement:
        case ast.For(iter=ast.Call(args=[taken, *_]) as call) if name_of(call.func) == "enumerate":
            return taken
        case ast.For(iter=taken) | ast.Return(value=taken) | ast.Assign(value=taken):
            return taken
    return None
