"""Blames, for fm40, what makes a graph inside the step: a function that it calls, or an optimizer that accumulates gradients.

Tells fm40 from fm15, a condition in the step, by the program.
"""

from ...examiner.blame import (
    Assignment,
    branch_around,
    called_at,
    functions_in,
    given_in,
    is_tf_function,
    names_in,
    nodes_of_file,
    with_keyword,
)
from ...examiner.recording import Recording
from ...examiner.rule import blames, reclassify
from ...observer.events import ExceptionRaised, GradientsApplied, Stack

CONDITIONS = {"cond", "case", "switch_case"}
ACCUMULATE = "gradient_accumulation_steps"


@reclassify("fm15", "fm40")
def condition_or_nested_graph(
    run: Recording, mode: str, raised: ExceptionRaised, stack: Stack
) -> str:
    """Both have one message."""
    if "`merge_call` called while" not in raised.traceback:
        return mode
    if any(CONDITIONS & set(called_at(frame)) for frame in stack):
        return "fm15"
    if accumulates(run):  # also in a branch of an optimizer that scales losses
        return "fm40"
    is_in_branch = any(each.in_branch for each in run.of(GradientsApplied)[-1:])
    return "fm15" if is_in_branch or any(map(branch_around, stack)) else "fm40"


@blames("fm40")
def nested_function(recording: Recording, stack: Stack) -> Stack:
    for i, frame in enumerate(stack):
        called = called_at(frame)
        if "run" in called:
            break
        lines = [line for name in called for line in traced_at(frame.path, name)]
        if lines:
            return (frame._replace(line=lines[0]), *stack[i:])
    made_at = accumulates(recording)
    return with_keyword(made_at, ACCUMULATE) if made_at else stack


def accumulates(recording: Recording) -> Stack:
    """Returns where an optimizer of Keras was made that accumulates gradients, which it does in a graph of its own."""
    updates = recording.of(GradientsApplied)
    return next((each.made_at for each in updates if each.accumulated > 1), ())


def traced_at(path: str, name: str) -> list[int]:
    """Returns the lines where a function of this name is given to `tf.function`, in an assignment or by a decorator."""
    lines = []
    for node in nodes_of_file(path, Assignment):
        made = [target for target, value in given_in(node) if is_tf_function(value)]
        lines += [node.lineno for each in made if name in names_in(each)]
    for _, function in functions_in([path], name):
        lines += [each.lineno for each in function.decorator_list if is_tf_function(each)]
    return lines
