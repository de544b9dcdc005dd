"""Repairs fm51: bfloat16, which needs no loss scale, takes the place of float16."""

import ast
from collections.abc import Iterator, Sequence

from ...examiner.edits import Edit
from ...examiner.repair import Source, repairs

HALF = {"mixed_float16": "mixed_bfloat16", "float16": "bfloat16"}


@repairs("fm51")
def bfloat16(source: Source, line: int) -> Iterator[Sequence[Edit]]:
    statement = source.simple_statement(line)
    strings = source.of(ast.Constant, statement) if statement else []
    edits = [
        source.replace(each, f'"{HALF[each.value]}"') for each in strings if each.value in HALF
    ]
    if edits:
        yield edits
