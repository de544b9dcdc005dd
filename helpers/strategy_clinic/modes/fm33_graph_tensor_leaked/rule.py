"""Blames, for fm33, the line that stores the tensor of a graph where other code finds it."""

import ast
from collections.abc import Sequence

from ...examiner.blame import (
    Assignment,
    called_name,
    changes_object,
    function_at,
    given_in,
    names_in,
    nodes_of_file,
    nodes_under,
    spans,
    statement_at,
    targets_of,
)
from ...examiner.printed import program_files
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Frame, Stack

FILLS = {"append", "extend", "add", "insert", "update", "setdefault"}


@blames("fm33")
def storing_line(recording: Recording, stack: Stack) -> Stack:
    for i, frame in enumerate(stack):
        line = stored_at(frame)
        if line:
            rest = stack[i + 1 :] if line == frame.line else stack[i:]
            return (frame._replace(line=line), *rest)
    paths = [*dict.fromkeys([*(frame.path for frame in stack[:1]), *program_files(recording)])]
    stored = [place for frame in stack[:1] for place in places_that_store(frame, paths)]
    return (stored[0], *stack) if len(stored) == 1 else stack


def places_that_store(frame: Frame, paths: Sequence[str]) -> list[Frame]:
    """Returns the lines of other functions that compute an attribute whose value this line reads."""
    own, read = function_at(frame), attributes_read(frame)
    places = [
        Frame(path, target.lineno, "")
        for path in paths
        for each in nodes_of_file(path)
        for target, value in given_in(each)
        if isinstance(target, ast.Attribute) and target.attr in read
        if not isinstance(value, ast.Constant)
    ]
    return [each for each in dict.fromkeys(places) if function_at(each) is not own]


def attributes_read(frame: Frame) -> set[str]:
    """Returns the attributes of which a line takes the value, or calls a method: of `model.book.usage.numpy()` it is `usage`."""
    nodes = [each for each in nodes_under(statement_at(frame)) if isinstance(each, ast.Attribute)]
    methods = {each.func for each in nodes_under(statement_at(frame)) if isinstance(each, ast.Call)}
    owners = {each.value for each in nodes if each not in methods}
    return {each.attr for each in nodes if isinstance(each.ctx, ast.Load) and each not in owners}


def stored_at(frame: Frame) -> int:
    """Returns the first line from this one on, in its function, that stores what this line computes; 0 if none does."""
    function, made = function_at(frame), statement_at(frame)
    if function is None or made is None:
        return 0
    names = targets_of(made) if isinstance(made, Assignment) else set[str]()
    outer = [each for each in ast.walk(function) if isinstance(each, ast.Global | ast.Nonlocal)]
    shared = {name for each in outer for name in each.names}
    statements = [each for each in ast.walk(function) if isinstance(each, Assignment | ast.Expr)]
    for each in sorted(statements, key=lambda each: each.lineno):
        is_result = each is made or bool(names & {*names_in(each.value)})
        is_later = each.lineno >= made.lineno and is_result
        if is_later and stores(each, shared):
            return frame.line if spans(each, frame.line) else each.lineno
    return 0


def stores(statement: Assignment | ast.Expr, shared: set[str]) -> bool:
    """Tells whether a statement puts a value into an attribute, an item, a list, or a variable of an outer function."""
    if isinstance(statement, ast.Expr):
        call = statement.value
        return isinstance(call, ast.Call) and called_name(call) in FILLS
    return changes_object(statement) or bool(targets_of(statement) & shared)
