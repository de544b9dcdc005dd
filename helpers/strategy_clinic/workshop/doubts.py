"""What a reader has to judge: an attempt that prints what is right, and may have got there around its exercise.

The table of words knows no mode. What it says of an attempt is compared with the exercise and with the solution.
"""

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from .exercises import is_print, prints_in

# At least one word of each of these groups must stay, if both the exercise and the solution have one.
MUST_STAY = {
    "it does not distribute its data any more": "experimental_distribute_dataset distribute_datasets_from_function"
    " fit evaluate predict predict_on_batch",
    "it does not run a step on each device any more": "run fit evaluate predict predict_on_batch",
    "it does not train any more": "apply_gradients apply minimize fit train_on_batch assign_sub",
    "it does not read what it has saved any more": "restore restore_or_initialize read load_weights load_model load",
    "it is not traced any more": "function fit",
    "it is not compiled any more": "jit_compile=True",
    "it does not take several steps in each call any more": "steps_per_execution",
}
# These must not be added: more of them than in the exercise and in the solution.
ADDED = {
    "it sets weights by hand": "set_weights",
    "it runs functions without tracing them": "run_functions_eagerly run_eagerly=True",
    "it reads with pickle": "allow_pickle=True",
    "it takes one step in each call": "steps_per_execution=1",
    "it hides every exception": "except except:Exception except:BaseException",
}
# These neither, in an exercise whose result is always the same.
ADDED_TO_CONSTANT = {"it sets a variable by hand": "assign assign_add assign_sub"}
PRINT = "print"
REPEATS = re.compile("(async )?(for|while|if) ")
CHANGED_LIBRARY = "it changes a part of TensorFlow"


@dataclass(frozen=True)
class Facts:
    """What a program has of the words above, how often each printed name gets a value, and a hash of where it does.

    `repeats` is a hash of the loops and conditions in which its prints stand.
    """

    words: dict[str, int]
    bound: dict[str, int]
    measures: str
    repeats: str


def facts_of(tree: ast.Module, names: set[str]) -> Facts:
    known = set(
        " ".join([*MUST_STAY.values(), *ADDED.values(), *ADDED_TO_CONSTANT.values()]).split()
    )
    words = Counter(word for word in words_of(tree) if word in known | {CHANGED_LIBRARY})
    statements = [(name, words) for name, words in measures_of(tree) if name in names]
    bound = Counter(name for name, _ in statements)
    printed = [words.split(" / ") for name, words in measures_of(tree) if name == PRINT]
    around = [" / ".join(filter(REPEATS.match, each)) for each in printed]
    measures = [f"{name}: {words}" for name, words in statements]
    return Facts(dict(words), dict(bound), hashed(measures), hashed(around))


def hashed(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def printed_names(task: ast.Module) -> set[str]:
    """Returns the names that the prints of a task read, and that of the strategy."""
    names = {
        node.id for call in prints_in(task) for node in ast.walk(call) if isinstance(node, ast.Name)
    }
    return names | {"strategy"}


def words_of(tree: ast.AST) -> Iterator[str]:
    """Yields the names that a program calls or reads, its keywords with and without their values, and what it excepts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
            if isinstance(node.ctx, ast.Store) and is_of_library(node.value):
                yield CHANGED_LIBRARY
        elif isinstance(node, ast.keyword):
            yield f"{node.arg}={ast.unparse(node.value)}"
            yield str(node.arg)
        elif isinstance(node, ast.ExceptHandler):
            yield f"except:{ast.unparse(node.type)}" if node.type else "except"


def is_of_library(node: ast.AST) -> bool:
    """Returns whether an attribute is set on something else than a variable of the program."""
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    return not isinstance(root, ast.Name) or root.id in ("tf", "np", "keras", "tf_keras")


def measures_of(tree: ast.AST, above: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yields each name that gets a value, or prints, with the statement and those that it stands in."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.stmt | ast.ExceptHandler | ast.withitem):
            continue
        header = header_of(node)
        for name in names_bound(node):
            yield name, " / ".join((*above, header))
        yield from measures_of(node, (*above, header))


def header_of(node: ast.AST) -> str:
    """Returns a statement in words; of one that has a body, what stands above the body."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return f"{type(node).__name__} {node.name}"
    words = ast.unparse(node)
    return words.splitlines()[0] if hasattr(node, "body") else words


def names_bound(node: ast.AST) -> Iterator[str]:
    """Yields the names to which a statement gives a value, or whose value it changes, not those in its body."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and is_print(node.value.func)
    ):
        yield PRINT
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler):
            continue
        for part in ast.walk(child):
            yield from changed_name(part)


def changed_name(part: ast.AST) -> Iterator[str]:
    if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
        yield part.id
    elif isinstance(part, ast.Attribute | ast.Subscript) and not isinstance(part.ctx, ast.Load):
        yield getattr(part.value, "id", "")
    elif (
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in CHANGES
    ):
        yield getattr(part.func.value, "id", "")


CHANGES = {"append", "clear", "extend", "insert", "pop", "remove", "update", "add", "discard"}


def doubts(attempt: Facts, exercise: Facts, solution: Facts, constant: bool) -> list[str]:
    """Returns what a reader has to judge; `constant` says that other data and devices do not change the right result."""
    found = [
        words
        for words, group in MUST_STAY.items()
        if all(has_any(facts, group) for facts in (exercise, solution))
        and not has_any(attempt, group)
    ]
    added = ADDED | (ADDED_TO_CONSTANT if constant else {}) | {CHANGED_LIBRARY: CHANGED_LIBRARY}
    found += [
        words
        for words, group in added.items()
        if count(attempt, group) > max(count(exercise, group), count(solution, group))
    ]
    if attempt.repeats not in (exercise.repeats, solution.repeats):
        found.append("it prints in another loop or condition")
    if constant and attempt.measures not in (exercise.measures, solution.measures):
        return [*found, "it gets what it prints in another way"]
    again = [
        name
        for name, times in attempt.bound.items()
        if times > max(exercise.bound.get(name, 0), solution.bound.get(name, 0))
    ]
    return found + [f"it gives {name!r} another value" for name in again]


def has_any(facts: Facts, group: str) -> bool:
    return any(word in facts.words for word in group.split())


def count(facts: Facts, group: str) -> int:
    words = [group] if group == CHANGED_LIBRARY else group.split()
    return sum(facts.words.get(word, 0) for word in words)
