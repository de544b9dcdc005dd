"""Repairs fm38: statistics of a normalization are taken over all replicas, and a variable's values are averaged."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.blame import keyword
from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs


@repairs("fm38")
def synchronize(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    statement = source.simple_statement(line)
    if statement is None:
        return
    layers = source.calls("BatchNormalization", statement)
    open_layers = [call for call in layers if keyword(call, "synchronized") is None]
    if open_layers:
        yield [source.add_argument(call, "synchronized=True") for call in open_layers]
    variables = source.calls("Variable", statement)
    if len(variables) == 1 and is_plain(variables[0]):
        yield [source.add_argument(variables[0], "aggregation=tf.VariableAggregation.MEAN")]


def is_plain(variable: ast.Call) -> bool:
    return not {word.arg for word in variable.keywords} & {"aggregation", "synchronization", None}
