"""Repairs fm32: the optimizer creates its variables where it is made, before the first step."""

import ast

from ...examiner.repair import Source, Ways, repairs
from ...examiner.repair_optimizers import build_where_made


@repairs("fm32")
def build_optimizer(source: Source, line: int) -> Ways:
    yield from build_where_made(source)
    statement = source.simple_statement(line)
    calls = source.calls("compile", statement) if statement else []
    if statement is not None and len(calls) == 1 and isinstance(calls[0].func, ast.Attribute):
        model = source.code(calls[0].func.value)
        yield [
            source.insert_after(statement, f"{model}.optimizer.build({model}.trainable_variables)")
        ]
