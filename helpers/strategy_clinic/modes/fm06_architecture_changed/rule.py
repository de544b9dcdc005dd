"""Checks fm06: a load filled a part of the model only; blames, for an exception, where the model or a number for it is from."""

import ast

from ...examiner.blame import (
    LOOPS_OF_KERAS,
    assigned_value,
    calls_at,
    code_at,
    functions_in,
    last_assignment,
    names_in,
    statement_at,
)
from ...examiner.history import updates_of
from ...examiner.recording import Recording
from ...examiner.rule import Steps, blames, observed, reclassify, rule
from ...examiner.unfilled import (
    filled_weights,
    is_filled_later,
    is_used_as_made,
    loads_with_kept,
    save_without,
)
from ...observer.events import (
    CheckpointRestored,
    ExceptionRaised,
    Frame,
    Loaded,
    ModelCalled,
    Stack,
    VariablesKept,
)

# What `by_name` and `skip_mismatch` hide: names that Keras chooses count on in one process.
BY_ORDER = (
    "give each layer a `name=`, if the file is read by names; or load without `by_name` and `skip_mismatch`, by the order of the "
    "layers"
)
LITERALS = ast.Constant, ast.Dict, ast.List


@rule("fm06")
def filled_in_part(recording: Recording) -> Steps:
    for load in loads_with_kept(recording):
        kept = load.fitting or load.kept
        if not load.location or is_filled_later(recording, load):
            continue
        is_partial = bool(filled_weights(recording, load)) and not save_without(recording, load)
        is_lacking = is_partial and is_used_as_made(recording, load)
        if is_misplaced(recording, load) or is_left_random(recording, load) or is_lacking:
            first = recording.name_of(kept[0])
            message = f"{len(kept)} variables kept their values when this was loaded, and {load.filled} got theirs"
            reason = (
                "the file has values of their shapes, which no variable got"
                if load.fitting
                else "what was saved has none for them"
                if is_lacking
                else "the file has other shapes for them"
            )
            proof = f"{first} is one; {reason}"
            fix = BY_ORDER if load.skipped and not load.filled else ""
            yield observed("fm06", recording, load.location, message, proof, fix=fix)


def is_misplaced(recording: Recording, load: VariablesKept) -> bool:
    """Tells whether the file has values that belong there, and nothing says that they are left out on purpose."""
    if not load.fitting:
        return False
    is_expected = load.skipped or calls_at(load.location, "expect_partial")
    return not load.filled or not is_expected or not updates_of(recording, load.kept)


def is_left_random(recording: Recording, load: VariablesKept) -> bool:
    """Tells whether what does not fit was skipped, not for another number of classes, or is used without a training."""
    if load.fitting or not load.skipped:
        return False
    kept = set(load.kept)
    calls = recording.of(ModelCalled, after=load)
    called = any(kept & set(call.variables) for call in calls)
    if load.other_output:
        return called and recording.finished and not updates_of(recording, load.kept)
    return called or bool(updates_of(recording, load.kept))


@reclassify("fm06")
def of_another_value(
    recording: Recording, mode: str, raised: ExceptionRaised, stack: Stack
) -> str | None:
    """Tells a value of another shape that comes up while a model runs, and no file was read, from one of a file."""
    calls = [each.location[:1] for each in recording.of(ModelCalled)]
    runs_model = calls_at(stack, *LOOPS_OF_KERAS) or stack[:1] in calls
    read = [*recording.of(Loaded), *recording.of(CheckpointRestored)]
    return None if runs_model and not read else mode


@blames("fm06")
def architecture(recording: Recording, stack: Stack) -> Stack:
    if not stack:
        return stack
    name = code_at(stack[0].path, stack[0].line).partition(".load_weights(")[0]
    made = last_assignment(stack[0], name)
    return (from_default(made) or made, *stack) if made else from_literal(stack)


def from_literal(stack: Stack) -> Stack:
    """Returns the line of this function in which a value that is used here was written down."""
    lines = [last_assignment(stack[0], name) for name in names_in(statement_at(stack[0]))]
    for line in filter(None, lines):
        if isinstance(assigned_value(line), LITERALS):
            return (line, *stack)
        if default := from_default(line):
            return (default, *stack)
    return stack


def from_default(made: Frame) -> Frame | None:
    """Returns where a function of this file that builds a model, called without arguments, has its numbers."""
    call = assigned_value(made)
    if not isinstance(call, ast.Call) or call.args or call.keywords:
        return None
    for _, function in functions_in([made.path], ast.unparse(call.func)):
        if any(isinstance(default, LITERALS) for default in function.args.defaults):
            return made._replace(line=function.lineno)
    return None
