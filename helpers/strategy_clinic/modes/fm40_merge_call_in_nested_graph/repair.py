"""Repairs fm40: a function that the step calls is no graph of its own."""

import ast

from ...examiner.blame import is_tf_function, last_line
from ...examiner.repair import Source, Ways, repairs


@repairs("fm40")
def without_own_graph(source: Source, line: int) -> Ways:
    for function in source.of(ast.FunctionDef):
        for decorator in function.decorator_list:
            if decorator.lineno == line and is_tf_function(decorator):
                yield [source.delete(decorator.lineno, last_line(decorator))]
    statement = source.simple_statement(line)
    for made, _, call in source.makers():
        if made is statement and is_tf_function(call.func) and len(call.args) == 1:
            yield [source.replace(call, source.code(call.args[0]))]
