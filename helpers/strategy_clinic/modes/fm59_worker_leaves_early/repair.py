"""Repairs fm59: what decides about the end of a loop is the mean of all workers, and not the value of one."""

import ast

from ...examiner.repair import Source, Ways, names, repairs_statement


@repairs_statement("fm59", compound=True)
def decide_together(source: Source, statement: ast.stmt) -> Ways:
    if not isinstance(statement, ast.If | ast.While):
        return
    function = source.function(statement)
    assigned = [source.assigned(name, function) for name in sorted(names(statement.test))]
    for part in (statement.test, *filter(None, assigned)):
        for call in source.calls("experimental_local_results", part):
            first = source.parents[call]
            if isinstance(first, ast.Subscript) and isinstance(call.func, ast.Attribute):
                strategy, value = source.code(call.func.value), source.code(call.args[0])
                yield [source.replace(first, f'{strategy}.reduce("MEAN", {value}, axis=None)')]
