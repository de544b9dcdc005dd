"""Repairs fm43: a Python number that is new in each call becomes a tensor."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs


@repairs("fm43")
def number_as_tensor(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    statement = source.simple_statement(line)
    if isinstance(statement, ast.Assign) and isinstance(statement.value, (ast.BinOp, ast.Constant)):
        yield [source.replace(statement.value, f"tf.constant({source.code(statement.value)})")]
