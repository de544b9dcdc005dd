"""Repairs fm03: what was made outside of the scope is made in it."""

from collections.abc import Iterator, Sequence

from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs


@repairs("fm03")
def make_in_scope(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    statement = source.simple_statement(line)
    if statement is not None:
        yield source.under_scope([statement])
