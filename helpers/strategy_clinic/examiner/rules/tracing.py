"""Modes that one run shows in what it traces. Rules from runs to findings, and the line of one that is loud."""

import ast

from ..recording import Finding, Observation
from . import blame
from .silent import each_run, observed


@each_run
def traced_again(run: Observation) -> list[Finding]:
    """fm43: every call of a traced function has traced it anew, since each was given something that was new."""
    found = []
    for fact in run.of("retraced"):
        if fact["at"]:
            says = f"each call traces the step again: it gets {fact['new']} that is new each time"
            proof = observed(f"{fact['calls']} calls, {fact['calls']} traces", run)
            found.append(Finding("fm43", given_at(fact), says, proof, (run.devices,)))
    return found


def given_at(fact: dict) -> tuple:
    """The line in which the argument got its value, or else the call."""
    frame = fact["at"][0]
    name = blame.name_given(frame, tuple(blame.calls_in(frame)), fact["place"])
    made = blame.assigned_before(frame, name) if name else None
    return tuple([made, *fact["at"]] if made else fact["at"])


def nested_function(run: Observation, at) -> tuple:
    """fm40: the line that made a graph of its own of a function which the step calls."""
    for i, frame in enumerate(at):
        called = blame.calls_in(frame)
        lines = [line for name in called for line in made_traced(frame[0], name)]
        if "run" in called:
            break
        if lines:
            return ([frame[0], lines[0], frame[2]], *at[i:])
    return tuple(at)


def by_source(mode: str, raised: dict, at) -> str:
    """fm15 and fm40 have one message; the program's own lines tell a condition in the step from a function in it."""
    if mode not in ("fm15", "fm40") or "`merge_call` called while" not in raised["text"]:
        return mode
    return "fm15" if any(map(in_condition, at)) else "fm40"


def in_condition(frame) -> bool:
    called = set(blame.calls_in(frame)) & {"cond", "case", "switch_case"}
    return bool(called) or blame.around(frame[0], frame[1], ast.If) is not None


def made_traced(path: str, name: str) -> list[int]:
    """Where a function of this name is given to `tf.function`: in an assignment, or by a decorator."""
    nodes = list(ast.walk(blame.tree_at(path) or ast.Module([], [])))
    made = [each for each in nodes if isinstance(each, ast.Assign) and traces(each.value)]
    found = [each.lineno for each in made if name in blame.names_under(each.targets[0])]
    functions = [each for each in nodes if isinstance(each, ast.FunctionDef) and each.name == name]
    return found + [d.lineno for each in functions for d in each.decorator_list if traces(d)]


def traces(node) -> bool:
    """Whether this is `tf.function`, or a call of it."""
    node = node.func if isinstance(node, ast.Call) else node
    return isinstance(node, ast.Attribute) and node.attr == "function"
