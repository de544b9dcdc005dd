"""Repairs fm53: a loop over a dataset goes over the same dataset, distributed."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.blame import name_of
from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs

SCOPE = ".scope()"


@repairs("fm53")
def distribute_dataset(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    loop = source.statement(line)
    if not isinstance(loop, ast.For) or loop.lineno != line:
        return
    scope, dataset = source.scope_before(loop), taken_from(loop.iter)
    if scope and isinstance(dataset, ast.Name):
        strategy = scope[: -len(SCOPE)]
        distributed = f"{strategy}.experimental_distribute_dataset({source.code(dataset)})"
        yield [source.replace(dataset, distributed)]


def taken_from(iterated: ast.expr) -> ast.expr:
    """Returns what a loop goes over, within an `enumerate`."""
    counted = isinstance(iterated, ast.Call) and name_of(iterated.func) == "enumerate"
    return iterated.args[0] if isinstance(iterated, ast.Call) and counted else iterated
