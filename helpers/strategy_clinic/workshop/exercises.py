"""An exercise taken out of a participant's notebook: the statements it needs, and whether they leave the proof alone.

Nothing is run here. A participant's own set-up, definitions and checks do not count: those are the project's.
"""

import ast
import warnings

from ..base.errors import UserError
from ..base.free_names import binds, needed, one_import_each, union, unparsed, uses
from ..base.public_api import NAMES
from ..rendering import sources

NAME = "attempt"
HEADING = "## Exercise"
GIVEN = {"clinic", "session", *NAMES}  # what may be used, and neither replaced nor altered
REACHING = {"delattr", "eval", "exec", "get_ipython", "globals", "setattr", "vars", "__import__"}
REACHING |= {"__class__", "__code__", "__dict__", "__globals__", "__setattr__", "modules"}
REACHING |= {"_getframe", "setprofile", "settrace"}
INWARD = {"IPython", "builtins", "ctypes", "gc", "importlib", "inspect", "strategy_clinic"}


def section(notebook) -> list:
    """The code cells below the heading of the exercise, or, where the heading is gone, all that define an attempt."""
    below, inside = [], False
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and "\n## " in f"\n{cell.source}":
            inside = HEADING in cell.source
        elif inside and cell.cell_type == "code" and "solution" not in sources.tags(cell):
            below.append(cell)
    if any(defines(cell) for cell in below):
        return below
    return [cell for cell in notebook.cells if cell.cell_type == "code" and defines(cell)]


def defines(cell) -> bool:
    return f"def {NAME}(" in cell.source


def before(notebook) -> list:
    """The project's code cells in front of the exercise."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return cells[: next(i for i, cell in enumerate(cells) if "exercise" in sources.tags(cell))]


def statements_of(cells) -> list:
    """Top-level statements; a cell that is no Python is refused if it holds the attempt, and else left out."""
    found = []
    for cell in cells:
        try:
            found += one_import_each(parsed(cell.source))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            if defines(cell):
                raise UserError(f"its exercise is not Python: {place_in(error)}") from None
    return found


def parsed(text: str) -> list:
    """Compiled as well, since some mistakes are found only then; what it warns of is the participant's affair."""
    with warnings.catch_warnings(action="ignore"):
        tree = ast.parse(text)
        compile(tree, "exercise", "exec")
    return tree.body


def place_in(error) -> str:
    line = (getattr(error, "text", "") or "").strip()
    return f"line {error.lineno}, {line!r}: {error.msg}" if line else str(error)


# The two parts that are run


def both_parts(project, participant) -> tuple[str, str]:
    """The project's code that an exercise needs, and the participant's; refused if that changes what is not its own."""
    given, solved = statements_of(before(project)), statements_of(tagged(project, "solution"))
    task, attempt = (
        needed(statements_of(section(each)), {NAME}) for each in (project, participant)
    )
    require_task(attempt, task)
    known = {ast.unparse(each) for each in given}
    mine = [each for each in attempt if ast.unparse(each) not in known]
    if unparsed(attempt) == unparsed(task):
        raise Unchanged("it is as it was handed out")
    wanted = {"session"} | union(uses, solved)
    fixed = union(binds, needed(given, wanted)) | (union(binds, task) & union(uses, solved))
    require_honest(mine, fixed, {ast.unparse(each) for each in task})
    own = needed(given, wanted | union(uses, mine))
    return unparsed(own), unparsed(mine)


class Unchanged(UserError):
    """Nobody has worked on this exercise."""


def tagged(notebook, tag: str) -> list:
    return [cell for cell in notebook.cells if tag in sources.tags(cell)]


def require_task(attempt: list, task: list):
    """The attempt is there, a function still, and proves what it was asked to prove."""
    if not attempt:
        raise UserError("its exercise cell is missing: no cell defines attempt(setup)")
    if proofs(attempt) != proofs(task) or not calls(task, is_check) <= calls(attempt, is_check):
        raise UserError(
            "its proof is not the one that was handed out: leave the return, and every check, as it is"
        )


def proofs(listed: list) -> list[str]:
    """What an attempt proves: every Proof that it makes, and every value that it returns, with the names in it."""
    functions = [each for each in listed if getattr(each, "name", "") == NAME]
    final = [each for each in functions[-1:] if isinstance(each, ast.FunctionDef)]
    returned = [each for function in final for each in own_returns(function)]
    free = [sorted(names_in(each) & union(uses, final)) for each in returned]
    return sorted(calls(listed, is_proof)) + [
        f"{ast.unparse(each)} of {names}" for each, names in zip(returned, free)
    ]


def calls(listed: list, wanted) -> set[str]:
    found = [node for each in listed for node in ast.walk(each) if isinstance(node, ast.Call)]
    return {ast.unparse(call) for call in found if wanted(call.func)}


def is_proof(function) -> bool:
    return getattr(function, "id", "") == "Proof"


def is_check(function) -> bool:
    return root(function) == "checks" and getattr(function, "attr", "").startswith("assert_")


def names_in(node) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def own_returns(node) -> list:
    """The return statements of a function, and not of the functions inside it."""
    found = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            found.append(child)
        elif not isinstance(child, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            found += own_returns(child)
    return found


def require_honest(attempt: list, fixed: set, known: set):
    """A net for what is done in passing, not a proof against somebody who means to cheat."""
    for statement in attempt:
        if ast.unparse(statement) in known:
            continue
        replaced = sorted(binds(statement) & (fixed | GIVEN))
        if replaced:
            raise UserError(f"it replaces {replaced[0]!r}, which is not part of the exercise")
        reached = sorted(reaching(statement))
        if reached:
            raise UserError(f"it reaches around its exercise with {reached[0]!r}")


def reaching(statement) -> set[str]:
    """Names by which code alters what it was given."""
    found = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            found |= {node.id} & REACHING
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            found |= {getattr(node, "attr", "")} & REACHING
            altered = not isinstance(node.ctx, ast.Load) and root(node) in GIVEN
            found |= {root(node)} if altered else set()
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names} & INWARD
        elif isinstance(node, ast.ImportFrom):
            found |= {(node.module or "").split(".")[0]} & INWARD
    return found


def root(node) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return getattr(node, "id", "")
