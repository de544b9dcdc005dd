"""Repairs fm23: a variable that replicas write to is made in the scope, and says how their values become one."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.blame import keyword
from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs

# As a counter, as a sum over replicas, as a mean: which one is right shows in the runs.
AGGREGATIONS = "ONLY_FIRST_REPLICA", "SUM", "MEAN"


@repairs("fm23", keeps_training=True)
def make_in_scope(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    statement = source.simple_statement(line)
    calls = source.calls("Variable", statement) if statement else []
    if not isinstance(statement, ast.Assign) or len(calls) != 1:
        return
    is_moved = source.is_in_scope(statement)
    moved = [] if is_moved else source.under_scope([statement])
    if moved and keyword(calls[0], "aggregation") is not None:
        yield moved
    elif moved or is_moved and keyword(calls[0], "aggregation") is None:
        for name in AGGREGATIONS:
            chosen = f"aggregation=tf.VariableAggregation.{name}"
            yield [*moved, source.add_argument(calls[0], chosen)]
