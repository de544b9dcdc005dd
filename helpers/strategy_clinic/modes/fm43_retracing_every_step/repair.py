"""Repairs fm43: a Python number that is new in each call becomes a tensor."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs_statement


@repairs_statement("fm43")
def number_as_tensor(source: Source, statement: ast.stmt) -> Iterator[Sequence[Edit]]:
    if isinstance(statement, ast.Assign) and isinstance(statement.value, (ast.BinOp, ast.Constant)):
        yield [source.replace(statement.value, f"tf.constant({source.code(statement.value)})")]
