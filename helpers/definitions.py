"""What an experiment needs in another process, as source text: nothing is pickled."""

import ast
import linecache
import os
from pathlib import Path


def definitions(runs: list) -> str:
    """The source of these experiments and of all that they use: constants, imports, functions and classes."""
    names, own = runs[0].body.__globals__, runs[0].body.__code__.co_filename
    found = [
        statement
        for file, text in cells_like(own).items()
        for statement in statements(text)
        if travels(statement, file, names)
    ]
    needed = closure({run.__name__ for run in runs}, found)
    kept = [ast.unparse(statement) for statement in found if bound(statement) & needed]
    return "\n".join([*constants(names, needed), *kept])


def closure(needed: set[str], found: list) -> set[str]:
    """All names that the needed ones lead to."""
    used = {
        each.id
        for statement in found
        if bound(statement) & needed
        for each in ast.walk(statement)
        if isinstance(each, ast.Name)
    }
    return needed if used <= needed else closure(needed | used, found)


def bound(statement) -> set[str]:
    """The names that a definition or an import makes."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.split(".")[0] for alias in statement.names}
    return {statement.name}


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
    return {name: "".join(linecache.getlines(name)) for name in sorted(alike, key=compiled)}


def compiled(cell: str) -> float:
    """When a cell was run: IPython 7 notes it, and puts cells of a traceback last again; later ones keep their order."""
    return linecache.cache[cell][1] or 0


def statements(cell: str) -> list:
    try:
        return ast.parse(cell).body
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


def constants(names: dict, needed: set[str]) -> list[str]:
    """Assignments of the plain values that the needed names stand for now."""
    return [
        f"{name} = {names[name]!r}"
        for name in sorted(needed & set(names))
        if is_literal(names[name])
    ]


def is_literal(value) -> bool:
    if not isinstance(value, (int, float, str, tuple, list, dict, bool)):
        return False
    try:
        return ast.literal_eval(repr(value)) == value
    except (ValueError, SyntaxError, TypeError):
        return False
