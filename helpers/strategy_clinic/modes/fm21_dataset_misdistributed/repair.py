"""Repairs fm21: the function that makes a dataset for each worker batches by a replica's share."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs


@repairs("fm21")
def share_of_batch(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    statement = source.simple_statement(line)
    function = source.function(statement) if statement else None
    calls = source.calls("batch", statement) if statement else []
    if not isinstance(function, ast.FunctionDef) or len(function.args.args) != 1 or len(calls) != 1:
        return
    context, sizes = function.args.args[0].arg, calls[0].args[:1]
    given = {source.code(each) for call in distributing(source) for each in call.args}
    if sizes and function.name in given and context not in source.code(sizes[0]):
        share = f"{context}.get_per_replica_batch_size({source.code(sizes[0])})"
        yield [source.replace(sizes[0], share)]


def distributing(source: Source) -> list[ast.Call]:
    return source.calls("distribute_datasets_from_function")
