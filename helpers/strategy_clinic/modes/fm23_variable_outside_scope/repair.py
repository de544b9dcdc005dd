"""Repairs fm23: a variable that replicas write to is made in the scope, and says how their values become one."""

import ast

from ...examiner.blame import keyword
from ...examiner.repair import Binding, Source, Ways, is_strategy, repairs_statement

# As a counter, as a sum over replicas, as a mean: which one is right shows in the runs.
AGGREGATIONS = "ONLY_FIRST_REPLICA", "SUM", "MEAN"


@repairs_statement("fm23", keeps_training=True)
def make_in_scope(source: Source, statement: ast.stmt) -> Ways:
    calls = source.calls("Variable", statement)
    if not calls:
        yield source.under_scope([statement])  # an object, which makes the variable
    if not isinstance(statement, Binding) or len(calls) != 1:
        return
    if own := source.class_of(statement):
        yield from made_in_scope(source, own)
    is_moved = source.is_in_scope(statement)
    moved = [] if is_moved else source.under_scope([statement])
    if moved and keyword(calls[0], "aggregation") is not None:
        yield moved
    elif moved or is_moved and keyword(calls[0], "aggregation") is None:
        for name in AGGREGATIONS:
            chosen = f"aggregation=tf.VariableAggregation.{name}"
            yield [*moved, source.add_argument(calls[0], chosen)]
    else:
        yield from made_later(source, statement, calls[0])


def made_in_scope(source: Source, own: ast.ClassDef) -> Ways:
    """Yields the scope around each statement that makes an object of a class, whose variables may say how they become one."""
    for made, *_ in source.makers():
        if source.calls(own.name, made) and (moved := source.under_scope([made])):
            yield moved


def made_later(source: Source, statement: ast.stmt, call: ast.Call) -> Ways:
    """Yields a variable that is made after the strategy, which is made below it in the same block."""
    below, text = source.below(statement), source.code(statement)
    for made, strategy, maker in source.makers():
        for name in AGGREGATIONS if made in below and is_strategy(maker) else ():
            chosen = f"{source.code(call)[:-1]}, aggregation=tf.VariableAggregation.{name})"
            scope = f"with {source.code(strategy)}.scope():"
            later = f"    {text.replace(source.code(call), chosen)}"
            yield [source.without(statement), source.insert_after(made, scope, later)]
