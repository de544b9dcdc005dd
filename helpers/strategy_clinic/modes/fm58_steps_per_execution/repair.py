"""Repairs fm58: `compile` without `steps_per_execution` takes one step in each call."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.blame import keyword, spans
from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs


@repairs("fm58")
def one_step_in_each_call(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    for call in source.calls("compile"):
        number = keyword(call, "steps_per_execution")
        if spans(call, line) and isinstance(number, ast.Constant):
            yield [source.replace(number, "1")]
