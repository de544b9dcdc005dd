"""Which module of the package imports which, as the text of the modules says it."""

import ast
import functools
from collections.abc import Set
from pathlib import Path

from statements import statements
from strategy_clinic.base import files
from strategy_clinic.programs import text


def python_files() -> list[Path]:
    """Returns the modules of the package; the source of a page is a notebook, and a program is a script."""
    pages = set(files.page_sources())
    programs = {page.with_name(f"{name}.py") for page in pages for name in text.SUBJECTS}
    own = sorted(files.package().rglob("*.py"))
    return [path for path in own if path not in pages | programs]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(files.package()).with_suffix("").parts)


def imports() -> dict[str, set[str]]:
    """Returns what each module imports of the others, at its top or inside a function."""
    modules = {module_of(path): path.read_text() for path in python_files()}
    return {module: imported(module, text, modules.keys()) for module, text in modules.items()}


@functools.cache
def relative_imports(text: str) -> list[ast.ImportFrom]:
    nodes = statements(ast.parse(text))
    return [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level]


def imported(module: str, text: str, modules: Set[str]) -> set[str]:
    own, result = module.split("."), set()
    for node in relative_imports(text):
        start = own[: len(own) - node.level] + (node.module or "").split(".")
        base = ".".join(part for part in start if part)
        inner = {f"{base}.{alias.name}".lstrip(".") for alias in node.names} & modules
        result |= inner or {base if base in modules else f"{base}.__init__".lstrip(".")}
    return result


def reachable(edges: dict[str, set[str]], start: str) -> set[str]:
    result, waiting = set(), [start]
    while waiting:
        new = edges.get(waiting.pop(), set()) - result
        result |= new
        waiting += new
    return result
