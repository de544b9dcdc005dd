"""Repairs fm35: a model is called before the restore, as the program calls it afterwards."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.edits import Edit
from ...examiner.repair import Source, names, repairs


@repairs("fm35")
def call_before_restore(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    statement = source.simple_statement(line)
    if statement is None:
        return
    function = source.function(statement)
    restored = {each.id for each in source.of(ast.Name, statement)}
    later = [
        call
        for call in source.of(ast.Call)
        if call.lineno > statement.lineno and source.function(call) is function
        if isinstance(call.func, ast.Name) and call.func.id in restored and call.args
        if names(call) <= source.names_before(statement)
    ]
    if later:
        yield [source.insert_before(statement, source.code(later[0]))]
