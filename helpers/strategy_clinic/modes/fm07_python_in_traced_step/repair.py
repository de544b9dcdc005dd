"""Repairs fm07: functions of NumPy on tensors of a traced function become those of TensorFlow."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs

SAME_IN_TENSORFLOW = {
    "abs": "abs",
    "exp": "exp",
    "mean": "reduce_mean",
    "sqrt": "sqrt",
    "square": "square",
    "sum": "reduce_sum",
    "max": "reduce_max",
    "min": "reduce_min",
}


@repairs("fm07")
def in_tensorflow(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    statement = source.simple_statement(line)
    calls = source.of(ast.Call, statement) if statement else []
    own = [call.func for call in calls if source.code(call.func).startswith(("np.", "numpy."))]
    functions = [each for each in own if isinstance(each, ast.Attribute)]
    if functions and all(each.attr in SAME_IN_TENSORFLOW for each in functions):
        yield [source.replace(each, f"tf.{SAME_IN_TENSORFLOW[each.attr]}") for each in functions]
