"""The source of a health check, to be pasted into a project."""

import ast
import inspect
from collections.abc import Callable
from typing import Any

from ..base.free_names import needed, unparsed
from . import checks


def pasted(check: Callable[..., None]) -> str:
    """Returns the source of a check with all that it needs; it imports TensorFlow alone."""
    tree: Any = ast.parse(inspect.getsource(checks))
    for node in ast.walk(tree):  # without types, which would need an import
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    return unparsed(needed(tree.body[1:], {check.__name__}))
