"""Repairs fm03: what was made outside of the scope is made in it."""

import ast

from ...examiner.repair import Source, Ways, repairs_statement


@repairs_statement("fm03")
def make_in_scope(source: Source, statement: ast.stmt) -> Ways:
    yield source.under_scope([statement])
