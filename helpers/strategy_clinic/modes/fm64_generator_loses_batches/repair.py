"""Repairs fm64: tf.data gets the function that makes the generator, and the shapes and types of its first batch."""

import ast

from ...examiner.blame import LOOPS_OF_KERAS, first_argument
from ...examiner.repair import Source, Ways, repairs_statement

FIRST = "tf.nest.map_structure(lambda each: tf.TensorSpec((None, *each.shape[1:]), each.dtype), next({0}))"
DATASET = f"tf.data.Dataset.from_generator(lambda: {{0}}, output_signature={FIRST})"


@repairs_statement("fm64")
def from_generator(source: Source, statement: ast.stmt) -> Ways:
    for call in source.calls(LOOPS_OF_KERAS, statement):
        data = first_argument(call, "x")
        made = source.resolved(data) if data else None
        if isinstance(made, ast.Call):
            yield [source.replace(made, DATASET.format(source.code(made)))]
