"""An edit that several modes share: an optimizer creates its variables where it is made."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .blame import keyword
from .edits import Edit
from .repair import Source, names


def build_where_made(source: Source) -> Iterator[Sequence[Edit]]:
    """Yields the edits for the only optimizer that the module makes, and the model that it trains."""
    made = [
        each
        for each in source.of(ast.Assign)
        if isinstance(each.value, ast.Call) and ".optimizers." in source.code(each.value.func)
    ]
    if len(made) != 1 or source.function(made[0]) is not source.tree:
        return
    optimizer, statement = source.code(made[0].targets[0]), made[0]
    if source.calls("build") or source.simple_statement(statement.lineno) is not statement:
        return
    for weights in trained_by(source, optimizer):
        known = {name for each in before(source, statement) for name in targets(source, each)}
        if weights.partition(".")[0] in known:
            yield [source.insert_after(statement, f"{optimizer}.build({weights})")]


def trained_by(source: Source, optimizer: str) -> list[str]:
    """Returns the weights, as code, that an optimizer applies gradients to, or those of the model it is compiled into."""
    found = []
    for call in source.calls("apply_gradients"):
        pairs = call.args[0] if call.args else None
        if isinstance(pairs, ast.Call) and len(pairs.args) == 2 and names(call.func) == {optimizer}:
            found.append(source.code(pairs.args[1]))
    for call in source.calls("compile"):
        chosen = call.args[0] if call.args else keyword(call, "optimizer")
        if chosen is not None and source.code(chosen) == optimizer:
            found += [f"{name}.trainable_variables" for name in names(call.func)]
    return [each for each in dict.fromkeys(found) if each.endswith(".trainable_variables")]


def before(source: Source, statement: ast.stmt) -> list[ast.Assign]:
    return [
        each
        for each in source.of(ast.Assign)
        if each.lineno < statement.lineno and source.function(each) is source.function(statement)
    ]


def targets(source: Source, statement: ast.Assign) -> list[str]:
    return [source.code(each) for each in statement.targets]
