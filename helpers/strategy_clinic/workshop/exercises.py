"""Takes the exercise out of a participant's notebook: a program that may be changed in all but what it prints.

Prints that the exercise does not have are for the participant's own eyes, and print nothing here. Nothing is run here.
"""

import ast
import difflib
import warnings
from dataclasses import dataclass
from functools import cached_property

from nbformat import NotebookNode

from ..base.errors import UserError
from ..programs.switches import STRATEGY_STATEMENT
from ..rendering import sources

EXERCISE = f"{sources.MAGIC}exercise"
FORBIDDEN = {"delattr", "eval", "exec", "get_ipython", "globals", "setattr", "vars", "__import__"}
FORBIDDEN |= {"__class__", "__code__", "__dict__", "__globals__", "__setattr__", "modules"}
FORBIDDEN |= {"_getframe", "setprofile", "settrace", "stdout", "__stdout__"}
FORBIDDEN_MODULES = {"IPython", "builtins", "ctypes", "gc", "importlib", "inspect"}
FORBIDDEN_MODULES |= {"strategy_clinic"}
SIMILAR = 0.6  # of two prints; 1 is the same
NO_PRINT = "lambda *values, **options: None"


class Unchanged(UserError):
    """Nobody has worked on this exercise."""


class NotPython(UserError):
    """Python cannot read the exercise."""


@dataclass(frozen=True)
class Attempt:
    """What a participant hands in for a task: a program that prints what the task prints, and nothing else."""

    program: str
    task: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.program)


def attempt_in(participant: NotebookNode, task: str) -> Attempt:
    """Returns the attempt in a participant's notebook; raises as `attempt_of` does, and UserError if there is none."""
    cells: list[str] = [
        cell.source for cell in participant.cells if cell.source.startswith(EXERCISE)
    ]
    if not cells:
        raise UserError(f"its exercise cell is missing: no cell begins with {EXERCISE}")
    return attempt_of(cells[-1].partition("\n")[2], task)


def attempt_of(program: str, task: str) -> Attempt:
    """Returns the attempt at a task that a text is.

    Raises Unchanged for an exercise as it was handed out, NotPython, and UserError for one that prints in another way.
    """
    tree, given = parsed(program.strip() + "\n"), ast.parse(task)
    if ast.dump(without_extra_prints(tree, given)) == ast.dump(given):
        raise Unchanged("it is as it was handed out")
    tree = parsed(program.strip() + "\n")
    if reached := sorted(forbidden_names(tree)):
        raise UserError(f"it uses {reached[0]!r}, which can change what is printed; do without it")
    return Attempt(ast.unparse(with_strategy_together(with_prints_of(given, tree))) + "\n", task)


def parsed(text: str) -> ast.Module:
    try:
        # Some mistakes are found only by compiling; warnings are the participant's affair.
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text)
            compile(tree, "exercise", "exec")
        ast.unparse(tree)  # which is done again when its prints are known
        return tree
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotPython(f"Python cannot read it: {in_words(error)}") from None


def with_strategy_together(tree: ast.Module) -> ast.Module:
    """Returns a program whose lines that make the strategy follow each other, since another setup replaces them together."""
    lines = [each for each in tree.body if STRATEGY_STATEMENT.match(ast.unparse(each))]
    made = next((each for each in lines if ast.unparse(each).startswith("strategy =")), None)
    if made:
        before = lines[: lines.index(made)]
        tree.body = [each for each in tree.body if each not in before]
        place = tree.body.index(made)
        tree.body[place:place] = before
    return tree


def in_words(error: Exception) -> str:
    if isinstance(error, SyntaxError) and error.text and error.text.strip():
        return f"line {error.lineno + 1 if error.lineno else 1} of the cell, {error.text.strip()!r}: {error.msg}"
    is_deep = isinstance(error, RecursionError | MemoryError)
    return "an expression in it is nested too deeply" if is_deep else str(error)


def forbidden_names(tree: ast.Module) -> set[str]:
    """Returns names with which a program could print something else; it is no proof against a determined cheat."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names |= {node.id} & FORBIDDEN
            names |= {node.id} & {"print"} if not isinstance(node.ctx, ast.Load) else set()
        elif isinstance(node, ast.Attribute):
            names |= {node.attr} & FORBIDDEN
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names} & FORBIDDEN_MODULES
        elif isinstance(node, ast.ImportFrom):
            names |= {(node.module or "").split(".")[0]} & FORBIDDEN_MODULES
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.arg | ast.alias):
            names |= {given_name(node)} & {"print"}
    return names


def given_name(node: ast.FunctionDef | ast.ClassDef | ast.arg | ast.alias) -> str:
    if isinstance(node, ast.alias):
        return node.asname or node.name
    return node.arg if isinstance(node, ast.arg) else node.name


# What it prints


def prints_in(tree: ast.AST) -> list[ast.Call]:
    """Returns the calls of `print`, in the order of the program."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and is_print(node.func)]
    return sorted(calls, key=lambda call: (call.lineno, call.col_offset))


def is_print(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "print"


def without_extra_prints(tree: ast.Module, task: ast.Module) -> ast.Module:
    """Removes the statements that print something which the task does not print."""
    wanted = {ast.dump(call) for call in prints_in(task)}

    class Remover(ast.NodeTransformer):
        def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:  # noqa: N802 - as ast names it
            is_extra = isinstance(node.value, ast.Call) and is_print(node.value.func)
            return None if is_extra and ast.dump(node.value) not in wanted else node

    return Remover().visit(tree)  # type: ignore[no-any-return]  # a module stays one


def with_prints_of(task: ast.Module, tree: ast.Module) -> ast.Module:
    """Returns a program that prints what the task prints: a print that was changed is changed back, others print nothing.

    Raises UserError if a print of the task is not there, and does not stand at the end of it.
    """
    last = prints_at_end(task)
    within = [call for call in prints_in(task) if ast.dump(call) not in map(ast.dump, last)]
    own = prints_in(tree)
    at_end = found_at_end(last, own)
    found = found_within(within, [call for call in own if call not in at_end])
    silence(tree, {id(call.func) for call in (*found, *at_end)})
    tree.body += [] if at_end else [ast.Expr(call) for call in last]
    return ast.fix_missing_locations(tree)


def prints_at_end(task: ast.Module) -> list[ast.Call]:
    """Returns the prints that a task ends with."""
    found: list[ast.Call] = []
    for statement in reversed(task.body):
        call = getattr(statement, "value", None)
        if not (isinstance(call, ast.Call) and is_print(call.func)):
            break
        found.insert(0, call)
    return found


def found_at_end(wanted: list[ast.Call], own: list[ast.Call]) -> list[ast.Call]:
    """Returns the last prints that are the wanted ones, in their order; none if one of them is not there."""
    found: list[ast.Call] = []
    rest = list(own)
    for call in reversed(wanted):
        while rest and ast.dump(rest[-1]) != ast.dump(call):
            rest.pop()
        if not rest:
            return []
        found.append(rest.pop())
    return found


def found_within(wanted: list[ast.Call], own: list[ast.Call]) -> list[ast.Call]:
    """Returns the prints that stand for the wanted ones: the same, or else the most similar, which is made the same."""
    same = {ast.dump(call): call for call in reversed(own)}
    found = [same[ast.dump(call)] for call in wanted if ast.dump(call) in same]
    rest = [call for call in own if call not in found]
    for call in wanted:
        if ast.dump(call) not in same:
            found.append(made_same(call, rest))
    return found


def made_same(wanted: ast.Call, rest: list[ast.Call]) -> ast.Call:
    words = ast.unparse(wanted)
    near = difflib.get_close_matches(words, map(ast.unparse, rest), 1, SIMILAR)
    if not near:
        raise UserError(f"one of its prints is gone: put back {words}")
    found = next(call for call in rest if ast.unparse(call) == near[0])
    found.args, found.keywords = wanted.args, wanted.keywords
    return found


def silence(tree: ast.Module, kept: set[int]) -> None:
    """Replaces each use of the name `print`, but for the kept ones, by a function that does nothing."""

    class Silence(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:  # noqa: N802 - as ast names it
            is_other = is_print(node) and id(node) not in kept
            return ast.parse(f"({NO_PRINT})", mode="eval").body if is_other else node

    Silence().visit(tree)
