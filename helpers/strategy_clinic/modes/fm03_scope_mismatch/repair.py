"""Repairs fm03: what was made outside of the scope is made in it."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs_statement


@repairs_statement("fm03")
def make_in_scope(source: Source, statement: ast.stmt) -> Iterator[Sequence[Edit]]:
    yield source.under_scope([statement])
