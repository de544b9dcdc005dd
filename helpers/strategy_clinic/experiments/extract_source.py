"""The source that an experiment needs in another process: nothing is pickled."""

import ast
import linecache
import os
from pathlib import Path
from typing import Any

from ..base.free_names import one_import_each, self_contained
from .proofs import Experiment


def source_of(experiments: list[Experiment]) -> str:
    """Returns the source of experiments and of all that they use: constants, imports, functions and classes."""
    code = experiments[0].body.__code__
    values = experiments[0].body.__globals__
    body = [
        statement
        for file, text in cells_like(code.co_filename).items()
        for statement in statements_in(text)
        if is_current(statement, file, values)
    ]
    names = {experiment.__name__ for experiment in experiments}
    return self_contained(one_import_each(body), names, values)


def cells_like(file: str) -> dict[str, str]:
    """Returns the cells that this kernel has run, in their order, by the names IPython gives them; or the one file."""
    if Path(file).exists():
        return {file: Path(file).read_text()}
    folder = os.path.dirname(file)
    cells = [
        name
        for name in linecache.cache
        if os.path.dirname(name) == folder and (folder or name.startswith("<ipython"))
    ]
    return {name: "".join(linecache.getlines(name)) for name in sorted(cells, key=time_of)}


def time_of(cell: str) -> float:
    """Returns when a cell was run. IPython 7 stores it, and moves cells of a traceback to the end; later versions do not."""
    entry: Any = linecache.cache[cell]
    return entry[1] or 0


def statements_in(cell: str) -> list[ast.stmt]:
    try:
        return ast.parse(cell).body
    except SyntaxError:  # a cell with magics defines nothing that an experiment could need
        return []


def is_current(statement: ast.stmt, file: str, values: dict[str, Any]) -> bool:
    """Returns whether a statement imports, or makes a definition that no later cell has replaced."""
    if isinstance(statement, ast.ClassDef):
        return statement.name in values
    if isinstance(statement, ast.FunctionDef):
        function = values.get(statement.name)
        code = getattr(getattr(function, "body", function), "__code__", None)
        return code is not None and code.co_filename == file
    return isinstance(statement, (ast.Import, ast.ImportFrom))
