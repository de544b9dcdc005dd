"""Repairs fm25: what is loaded or cloned, and the call of `compile` right after it, go under the scope."""

import ast
import itertools

from ...examiner.blame import targets_in
from ...examiner.repair import Binding, Source, Ways, repairs_statement


@repairs_statement("fm25")
def load_in_scope(source: Source, statement: ast.stmt) -> Ways:
    if not isinstance(statement, Binding):
        return
    name = source.code(targets_in(statement)[0])
    below = itertools.takewhile(lambda e: is_compile(source, e, name), source.below(statement))
    yield source.under_scope([statement, *below])


def is_compile(source: Source, statement: ast.stmt, name: str) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    return call.func.attr == "compile" and source.code(call.func.value) == name
