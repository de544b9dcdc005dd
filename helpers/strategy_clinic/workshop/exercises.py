"""Takes the exercise out of a participant's notebook: a program that may be changed in all but what it prints.

Nothing is run here.
"""

import ast
import warnings

from nbformat import NotebookNode

from ..base.errors import UserError
from ..rendering import sources

EXERCISE = f"{sources.MAGIC}exercise"
FORBIDDEN = {"delattr", "eval", "exec", "get_ipython", "globals", "setattr", "vars", "__import__"}
FORBIDDEN |= {"__class__", "__code__", "__dict__", "__globals__", "__setattr__", "modules"}
FORBIDDEN |= {"_getframe", "setprofile", "settrace", "stdout", "__stdout__"}
FORBIDDEN_MODULES = {"IPython", "builtins", "ctypes", "gc", "importlib", "inspect"}
FORBIDDEN_MODULES |= {"strategy_clinic"}


class Unchanged(UserError):
    """Nobody has worked on this exercise."""


def program_of(participant: NotebookNode, task: str) -> str:
    """Returns the program of a participant's notebook; raises as `checked` does, and UserError if there is none."""
    cells: list[str] = [
        cell.source for cell in participant.cells if cell.source.startswith(EXERCISE)
    ]
    if not cells:
        raise UserError(f"its exercise cell is missing: no cell begins with {EXERCISE}")
    return checked(cells[-1].partition("\n")[2], task)


def checked(program: str, task: str) -> str:
    """Returns the program that a participant hands in for a task.

    Raises Unchanged for an exercise as it was handed out, and UserError for one that prints something else than the task.
    """
    text = program.strip() + "\n"
    attempt, given = parsed(text), ast.parse(task)
    if ast.dump(attempt) == ast.dump(given):
        raise Unchanged("it is as it was handed out")
    if printed(attempt) != printed(given):
        raise UserError("it does not print what was handed out: leave each print as it is")
    if reached := sorted(forbidden_names(attempt)):
        raise UserError(f"it reaches around its exercise with {reached[0]!r}")
    return text


def parsed(text: str) -> ast.Module:
    try:
        # Some mistakes are found only by compiling; warnings are the participant's affair.
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text)
            compile(tree, "exercise", "exec")
        return tree
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"its exercise is not Python: {in_words(error)}") from None


def in_words(error: Exception) -> str:
    if isinstance(error, SyntaxError) and error.text and error.text.strip():
        return f"line {error.lineno}, {error.text.strip()!r}: {error.msg}"
    return str(error)


def printed(tree: ast.Module) -> list[str]:
    """Returns every use of the name `print`, in the order of the program."""
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
    ]
    names = [node for node in ast.walk(tree) if getattr(node, "id", "") == "print"]
    return [*map(ast.unparse, calls), *map(ast.unparse, names)]


def forbidden_names(tree: ast.Module) -> set[str]:
    """Returns names with which a program could print something else; it is no proof against a determined cheat."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names |= {node.id} & FORBIDDEN
        elif isinstance(node, ast.Attribute):
            names |= {node.attr} & FORBIDDEN
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names} & FORBIDDEN_MODULES
        elif isinstance(node, ast.ImportFrom):
            names |= {(node.module or "").split(".")[0]} & FORBIDDEN_MODULES
    return names
