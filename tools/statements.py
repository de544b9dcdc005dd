"""The statements of a Python text; nine tenths of the nodes of its tree are in expressions, which hold no import or docstring."""

import ast
from collections.abc import Iterator

BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the node and the statements in it, with the handlers and cases that hold some of them."""
    yield node
    for block in BLOCKS:
        for each in getattr(node, block, ()):
            yield from statements(each)
