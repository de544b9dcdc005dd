"""A health check as text: what a reader puts into a project of their own."""

import ast
import inspect

from ..base.free_names import needed, unparsed
from . import checks


def pasted(check) -> str:
    """The source of a check with all that it needs; of modules, TensorFlow alone."""
    body = ast.parse(inspect.getsource(checks)).body[1:]
    return unparsed(needed(body, {check.__name__}))
