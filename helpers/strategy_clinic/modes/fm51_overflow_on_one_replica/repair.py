"""Repairs fm51: bfloat16, which needs no loss scale, takes the place of float16."""

import ast

from ...examiner.repair import Source, Ways, repairs_statement

HALF = {"mixed_float16": "mixed_bfloat16", "float16": "bfloat16"}


@repairs_statement("fm51")
def bfloat16(source: Source, statement: ast.stmt) -> Ways:
    strings = source.of(ast.Constant, statement)
    edits = [
        source.replace(each, f'"{HALF[each.value]}"') for each in strings if each.value in HALF
    ]
    if edits:
        yield edits
