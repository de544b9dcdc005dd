"""Repairs fm10: a model with other variables is compiled with a new optimizer of the same configuration."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.blame import keyword
from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs


@repairs("fm10")
def new_optimizer(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    statement = source.simple_statement(line)
    for call in source.calls("compile", statement) if statement else []:
        chosen = call.args[0] if call.args else keyword(call, "optimizer")
        if isinstance(chosen, ast.Name):
            fresh = f"type({chosen.id}).from_config({chosen.id}.get_config())"
            yield [source.replace(chosen, fresh)]
