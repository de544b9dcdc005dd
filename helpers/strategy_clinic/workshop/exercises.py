"""Takes the exercise out of a participant's notebook: the statements that it needs, if they leave its proof as it is.

Nothing is run here. A participant's own set-up, definitions and checks are not used: those are the project's.
"""

import ast
import warnings
from collections.abc import Callable, Iterable, Sequence

from nbformat import NotebookNode

from ..base.errors import UserError
from ..base.free_names import binds, needed, one_import_each, union, unparsed, uses
from ..base.public_api import NAMES
from ..rendering import sources

NAME = "attempt"
HEADING = "## Exercise"
PROTECTED = {
    "clinic",
    "session",
    *NAMES,
}  # an exercise uses them, and must not replace or alter them
FORBIDDEN = {"delattr", "eval", "exec", "get_ipython", "globals", "setattr", "vars", "__import__"}
FORBIDDEN |= {"__class__", "__code__", "__dict__", "__globals__", "__setattr__", "modules"}
FORBIDDEN |= {"_getframe", "setprofile", "settrace"}
FORBIDDEN_MODULES = {"IPython", "builtins", "ctypes", "gc", "importlib", "inspect"}
FORBIDDEN_MODULES |= {"strategy_clinic"}


class Unchanged(UserError):
    """Nobody has worked on this exercise."""


def both_parts(project: NotebookNode, participant: NotebookNode) -> tuple[str, str]:
    """Returns the project's code that an exercise needs, and the participant's code.

    Raises Unchanged for an exercise as it was handed out, and UserError for one that changes what is not its own.
    """
    code = [cell for cell in project.cells if cell.cell_type == "code"]
    numbers = {tag: number for number, cell in enumerate(code) for tag in sources.tags(cell)}
    given = statements_of(code[: numbers["exercise"]])
    solution = statements_of([code[numbers["solution"]]])
    task = needed(statements_of(exercise_cells(project)), {NAME})
    attempt = needed(statements_of(exercise_cells(participant)), {NAME})
    require_same_proof(attempt, task)
    if unparsed(attempt) == unparsed(task):
        raise Unchanged("it is as it was handed out")
    given_texts = set(map(ast.unparse, given))
    own = [statement for statement in attempt if ast.unparse(statement) not in given_texts]
    wanted = {"session"} | union(uses, solution)
    fixed = union(binds, needed(given, wanted)) | (union(binds, task) & union(uses, solution))
    task_texts = set(map(ast.unparse, task))
    for statement in own:
        if ast.unparse(statement) not in task_texts:
            require_honest(statement, fixed)
    return unparsed(needed(given, wanted | union(uses, own))), unparsed(own)


def exercise_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Returns the code cells below the exercise's heading; without one, all cells that define an attempt."""
    below, inside = [], False
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and "\n## " in f"\n{cell.source}":
            inside = HEADING in cell.source
        elif inside and cell.cell_type == "code" and "solution" not in sources.tags(cell):
            below.append(cell)
    if any(map(defines_attempt, below)):
        return below
    return [cell for cell in notebook.cells if cell.cell_type == "code" and defines_attempt(cell)]


def defines_attempt(cell: NotebookNode) -> bool:
    return f"def {NAME}(" in cell.source


def statements_of(cells: Iterable[NotebookNode]) -> list[ast.stmt]:
    """Returns the top-level statements; skips a cell that is not Python, but raises UserError if it is the attempt's."""
    statements: list[ast.stmt] = []
    for cell in cells:
        try:
            # Some mistakes are found only by compiling; warnings are the participant's affair.
            with warnings.catch_warnings(action="ignore"):
                tree = ast.parse(cell.source)
                compile(tree, "exercise", "exec")
            statements += one_import_each(tree.body)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            if defines_attempt(cell):
                raise UserError(f"its exercise is not Python: {in_words(error)}") from None
    return statements


def in_words(error: Exception) -> str:
    if isinstance(error, SyntaxError) and error.text and error.text.strip():
        return f"line {error.lineno}, {error.text.strip()!r}: {error.msg}"
    return str(error)


# What the proof is


def require_same_proof(attempt: list[ast.stmt], task: list[ast.stmt]) -> None:
    """Raises UserError if the attempt is missing, or proves and checks something else than the task."""
    if not attempt:
        raise UserError("its exercise cell is missing: no cell defines attempt(setup)")
    checks = calls(task, is_check)
    if proofs(attempt) != proofs(task) or not checks <= calls(attempt, is_check):
        raise UserError(
            "its proof is not the one that was handed out: leave the return, and every check, as it is"
        )


def proofs(statements: Sequence[ast.stmt]) -> list[str]:
    """Returns every Proof that an attempt makes, and every value that it returns with its free names."""
    functions = [each for each in statements if getattr(each, "name", "") == NAME]
    last = [each for each in functions[-1:] if isinstance(each, ast.FunctionDef)]
    returned = []
    for function in last:
        for value in returns_of(function):
            names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
            returned.append(f"{ast.unparse(value)} of {sorted(names & uses(function))}")
    return sorted(calls(statements, is_proof)) + returned


def calls(statements: Iterable[ast.stmt], wanted: Callable[[ast.expr], bool]) -> set[str]:
    nodes = [node for statement in statements for node in ast.walk(statement)]
    found = [node for node in nodes if isinstance(node, ast.Call) and wanted(node.func)]
    return set(map(ast.unparse, found))


def is_proof(function: ast.expr) -> bool:
    return getattr(function, "id", "") == "Proof"


def is_check(function: ast.expr) -> bool:
    return root(function) == "checks" and getattr(function, "attr", "").startswith("assert_")


def returns_of(node: ast.AST) -> list[ast.Return]:
    """Returns the return statements of a function, but not of functions inside it."""
    found = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            found.append(child)
        elif not isinstance(child, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            found += returns_of(child)
    return found


# What an exercise must not do


def require_honest(statement: ast.stmt, fixed: set[str]) -> None:
    """Raises UserError for what replaces or reaches the project's part; it is no proof against a determined cheat."""
    if replaced := sorted(binds(statement) & (fixed | PROTECTED)):
        raise UserError(f"it replaces {replaced[0]!r}, which is not part of the exercise")
    if reached := sorted(forbidden_names(statement)):
        raise UserError(f"it reaches around its exercise with {reached[0]!r}")


def forbidden_names(statement: ast.stmt) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            names |= {node.id} & FORBIDDEN
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            names |= {getattr(node, "attr", "")} & FORBIDDEN
            if not isinstance(node.ctx, ast.Load):
                names |= {root(node)} & PROTECTED
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names} & FORBIDDEN_MODULES
        elif isinstance(node, ast.ImportFrom):
            names |= {(node.module or "").split(".")[0]} & FORBIDDEN_MODULES
    return names


def root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return getattr(node, "id", "")
