"""Repairs fm43: a Python number that is new in each call becomes a tensor."""

import ast

from ...examiner.repair import Source, Ways, repairs_statement


@repairs_statement("fm43")
def number_as_tensor(source: Source, statement: ast.stmt) -> Ways:
    if isinstance(statement, ast.Assign) and isinstance(statement.value, (ast.BinOp, ast.Constant)):
        yield [source.replace(statement.value, f"tf.constant({source.code(statement.value)})")]
