"""Blames, for fm15, the frame in which a condition or a loop leads to what failed; tells fm15 from fm40 by the program."""

import ast

from ...examiner.blame import call_in_files, called_at, innermost
from ...examiner.recording import Recording
from ...examiner.rule import blames, reclassify
from ...observer.events import ExceptionRaised, Frame, Stack

CONDITIONS = {"cond", "case", "switch_case"}


@blames("fm15")
def from_condition(recording: Recording, stack: Stack) -> Stack:
    for i, frame in enumerate(stack):
        if {"cond", "case", "while_loop"} & set(called_at(frame)):
            return stack[i:]
    return call_in_files(stack, accumulates)


def accumulates(call: ast.Call) -> bool:
    """Tells whether a call asks an optimizer of Keras to accumulate gradients, which does so in a condition."""
    return any(word.arg == "gradient_accumulation_steps" for word in call.keywords)


@reclassify("fm15", "fm40")
def condition_or_nested_function(
    run: Recording, mode: str, raised: ExceptionRaised, stack: Stack
) -> str:
    """Both have one message; the program's own lines tell a condition in the step from a function in it."""
    if "`merge_call` called while" not in raised.traceback:
        return mode
    return "fm15" if any(map(is_in_condition, stack)) else "fm40"


def is_in_condition(frame: Frame) -> bool:
    return bool(CONDITIONS & set(called_at(frame))) or innermost(frame, ast.If) is not None
