"""Copies of one variable that differ between the replicas, and what makes an optimizer update them differently."""

from __future__ import annotations

import ast
import re

from ..observer.events import (
    DivergedCopies,
    Frame,
    GradientsApplied,
    Owner,
    Stack,
    StepEnded,
    VariableWritten,
)
from .blame import called_name, changes_object, nodes_of_file
from .printed import program_files
from .recording import Recording

SAME_COPIES = 1e-5  # relative
TAKES = {"next", "pop", "popleft", "append"}  # change the object that they are called for


def last_difference(recording: Recording) -> tuple[str, list[DivergedCopies]]:
    """Returns when copies differed last, at the end or after a step: what is loaded then makes them equal again."""
    found = [(when, copies) for when, copies in looks_at(recording) if copies]
    return found[-1] if found else ("", [])


def looks_at(recording: Recording) -> list[tuple[str, list[DivergedCopies]]]:
    """Returns after each step and at the end which copies differ, without those of optimizers."""
    looks = [(f"after {step.name}", step.diverged_copies) for step in recording.of(StepEnded)]
    if recording.finished:
        looks.append(("at the end", recording.ended.diverged_copies))
    own = Owner.USER, Owner.LAYER
    return [
        (
            when,
            [c for c in copies if c.distance > SAME_COPIES and recording.maker_of(c.number) in own],
        )
        for when, copies in looks
    ]


def fitted_only(recording: Recording) -> frozenset[int]:
    """Returns the variables that optimizers train and nothing else writes."""
    written = recording.of(VariableWritten)
    others = {each.number for each in written if each.writer is not Owner.OPTIMIZER}
    return recording.trained - others


def state_of_schedule(recording: Recording) -> Stack:
    """Returns the line on which a schedule of the program's own changes a value of Python when its rate is asked for."""
    rates = {update.optimizer.learning_rate for update in recording.of(GradientsApplied)}
    names = {name for rate in rates for name in re.findall(r"\w+", rate)}
    for path in program_files(recording):
        for made in nodes_of_file(path, ast.ClassDef):
            for function in made.body if made.name in names else ():
                if isinstance(function, ast.FunctionDef) and function.name == "__call__":
                    nodes = [
                        each for each in ast.walk(function) if isinstance(each, ast.stmt | ast.Call)
                    ]
                    for node in filter(changes, nodes):
                        return (Frame(path, node.lineno, "__call__"),)
    return ()


def changes(node: ast.AST) -> bool:
    """Tells whether a statement or a call changes what is there after the function has ended."""
    match node:
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            return node.value is not None and changes_object(node)
        case ast.Global() | ast.Nonlocal():
            return True
        case ast.Call():
            return called_name(node) in TAKES
    return False
