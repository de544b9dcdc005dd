"""Repairs fm29: the optimizer is saved with what it trains, or has its variables before they are loaded."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs
from ...examiner.repair_saved import hold, made_at, made_by


@repairs("fm29", keeps_training=True)
def save_optimizer(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    told = made_at(source, source.told, line)
    yield from hold(source, line, [*told, *made_by(source, "optimizer", line)])
    yield from build_before_load(source, line)


def build_before_load(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    """Yields a line above the one that loads weights: an optimizer without variables gets none from the file."""
    statement = source.simple_statement(line)
    for call in source.calls("load_weights", statement) if statement else ():
        if statement and isinstance(call.func, ast.Attribute):
            model = source.code(call.func.value)
            built = f"{model}.optimizer.build({model}.trainable_variables)"
            yield [source.insert_before(statement, built)]
