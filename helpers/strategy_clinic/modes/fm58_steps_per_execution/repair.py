"""Repairs fm58: `compile` without `steps_per_execution` takes one step in each call."""

import ast

from ...examiner.blame import keyword, spans
from ...examiner.repair import Source, Ways, repairs


@repairs("fm58")
def one_step_in_each_call(source: Source, line: int) -> Ways:
    for call in source.calls("compile"):
        number = keyword(call, "steps_per_execution")
        if spans(call, line) and isinstance(number, ast.Constant):
            yield [source.replace(number, "1")]
