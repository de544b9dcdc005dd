"""What an experiment needs in another process, as source text: nothing is pickled."""

import ast
import linecache
import os
from pathlib import Path

from ..base.free_names import needed, one_import_each, union, uses


def definitions(runs: list) -> str:
    """The source of these experiments and of all that they use: constants, imports, functions and classes."""
    names, own = runs[0].body.__globals__, runs[0].body.__code__.co_filename
    found = [
        statement
        for file, text in cells_like(own).items()
        for statement in statements_in(text)
        if travels(statement, file, names)
    ]
    wanted = {run.__name__ for run in runs}
    kept = needed(found, wanted)
    return "\n".join([*constants(names, wanted | union(uses, kept)), *map(ast.unparse, kept)])


def cells_like(own: str) -> dict[str, str]:
    """Every cell that this kernel has run, by the file name that IPython gave it; or the module's one file."""
    if Path(own).exists():
        return {own: Path(own).read_text()}
    folder = os.path.dirname(own)
    alike = [
        name
        for name in linecache.cache
        if os.path.dirname(name) == folder and (folder or name.startswith("<ipython"))
    ]
    return {name: "".join(linecache.getlines(name)) for name in sorted(alike, key=when_run)}


def when_run(cell: str) -> float:
    """When a cell was run. IPython 7 notes it, and moves cells of a traceback to the end; later versions keep the order."""
    return linecache.cache[cell][1] or 0


def statements_in(cell: str) -> list:
    try:
        return one_import_each(ast.parse(cell).body)
    except SyntaxError:  # a cell with magics defines nothing that an experiment could need
        return []


def travels(statement, file: str, names: dict) -> bool:
    """Imports do, and so do definitions, unless a later cell has replaced them."""
    if isinstance(statement, ast.ClassDef):
        return statement.name in names
    if isinstance(statement, ast.FunctionDef):
        function = names.get(statement.name)
        return getattr(
            getattr(function, "body", function), "__code__", None
        ) is not None and file == where_defined(function)
    return isinstance(statement, (ast.Import, ast.ImportFrom))


def where_defined(function) -> str:
    return getattr(function, "body", function).__code__.co_filename


def constants(names: dict, wanted: set[str]) -> list[str]:
    """Assignments of the plain values that the wanted names stand for now."""
    return [
        f"{name} = {names[name]!r}"
        for name in sorted(wanted & set(names))
        if is_literal(names[name])
    ]


def is_literal(value) -> bool:
    if not isinstance(value, (int, float, str, tuple, list, dict, bool)):
        return False
    try:
        return ast.literal_eval(repr(value)) == value
    except (ValueError, SyntaxError, TypeError):
        return False
