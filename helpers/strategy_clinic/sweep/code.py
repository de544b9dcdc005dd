"""Which modules a cell depends on, as their imports say, and a hash of them."""

import ast
import functools
import hashlib
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

from .items import Item

FOLDER = Path(__file__).parent
MEASURED = "runs.measured"  # where every cell is measured


def code_of(item: Item) -> str:
    """Returns a hash of a row and of the modules of the sweep that measure it; a cell is run again when it changes.

    Comments and docstrings do not count. What is outside of the sweep starts TensorFlow, and is left out.
    """
    texts = [repr(item), *map(plain, sorted(modules_of(item)))]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:8]


def modules_of(item: Item) -> frozenset[str]:
    """Returns the modules that are imported, and the two that a row names: its measurement, and functions of our own."""
    own = ["measurements.own"] if "own." in repr(item) else []
    starts = [MEASURED, f"measurements.{item.kind}", *own]
    return frozenset(starts).union(*map(reached, starts))


@functools.cache
def reached(start: str) -> frozenset[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = imported(waiting.pop()) - found
        found |= new
        waiting += new
    return frozenset(found)


@functools.cache
def imported(module: str) -> frozenset[str]:
    """Returns the modules of the sweep that a module imports, at its top or inside a function."""
    nodes = ast.walk(ast.parse(source_of(module)))
    relative = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level]
    names = {
        name
        for node in relative
        for base in [base_of(module, node)]
        if base is not None
        for name in (base, *[f"{base}.{alias.name}".strip(".") for alias in node.names])
    }
    return frozenset(name for name in names if (FOLDER / path_of(name)).is_file())


def base_of(module: str, node: ast.ImportFrom) -> str | None:
    """Returns what a relative import begins with, inside of the sweep; None if that is outside."""
    above = module.split(".")[: -node.level]
    if node.level > module.count(".") + 1:
        return None
    return ".".join([*above, *filter(None, [node.module])])


def path_of(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


@functools.cache
def source_of(module: str) -> str:
    """Returns the text of a module, without TensorFlow, which it would import."""
    return (FOLDER / path_of(module)).read_text()


@functools.cache
def plain(module: str) -> str:
    """Returns the lines of a module without comments and docstrings, which are the same on each version of Python."""
    text = source_of(module)
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for first, last in docstrings(ast.parse(text)):
        lines[first - 1 : last] = [""] * (last - first + 1)
    return "\n".join(filter(None, map(str.rstrip, lines)))


def docstrings(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Yields the first and the last line of each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.lineno, first.end_lineno or first.lineno
