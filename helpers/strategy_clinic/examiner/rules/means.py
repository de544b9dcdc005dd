"""In which of the program's lines many numbers become the one that is differentiated. Runs nothing."""

import ast

from . import blame

MEANS = "reduce_mean", "reduce_sum", "mean", "sum", "compute_average_loss"


def from_mean(at) -> tuple:
    """The line that chose or wrote the mean which a value comes from, maybe in functions that are called on the way."""
    chosen = blame.from_choice(at)
    if not at or chosen[0] != at[0]:
        return tuple(chosen)
    frames, seen = [at[0]], []
    while frames:
        frame = frames.pop(0)
        if any(each in MEANS and not ends_of(frame, each) for each in blame.calls_in(frame)):
            return tuple(at) if frame == at[0] else (frame, *at)
        seen.append(frame)
        frames += [each for each in sources_of(frame) if each not in seen]
    return tuple(at)


def into_step(at, method: str) -> tuple:
    """The line that calls a method in the step that is given to `run` here: of a step in a traced function no frame is left."""
    if not at or method in blame.calls_in(at[0]):
        return tuple(at)
    name = blame.given_to_run(at[0])
    calls = [each for each in blame.defined_in(at[0], name) if isinstance(each, ast.Call)]
    lines = [each.lineno for each in calls if blame.called_name(each) == method]
    return ([at[0][0], lines[0], name], *at) if lines else tuple(at)


def sources_of(frame) -> list:
    """Where the names of a line get their values, the last one first, and where the functions that it calls end."""
    statement, scope = blame.statement_at(frame), blame.function_at(frame)
    names = set(blame.names_under(statement)) if statement else set()
    lines = {
        each.lineno: each for each in (ast.walk(scope) if scope else ()) if is_assignment(each)
    }
    given = [
        [frame[0], line, frame[2]]
        for line in sorted(lines, reverse=True)
        if line < frame[1] and names & names_given(lines[line])
    ]
    return [*given, *(end for name in blame.calls_in(frame) for end in ends_of(frame, name))]


def is_assignment(node) -> bool:
    return isinstance(node, ast.Assign | ast.AugAssign)


def names_given(assignment) -> set[str]:
    targets = blame.assigned_targets(assignment)
    return {name for each in targets for name in blame.names_under(each)}


def ends_of(frame, name: str) -> list:
    """The lines in which functions of this name, in the same file, say what comes out of them."""
    tree = blame.tree_at(frame[0])
    functions = [
        each
        for each in (ast.walk(tree) if tree else ())
        if isinstance(each, ast.FunctionDef) and each.name == name
    ]
    ends = [end for each in functions for end in ast.walk(each) if isinstance(end, ast.Return)]
    return [[frame[0], each.lineno, name] for each in ends]
