"""Checks fm70: a model that is made again is never trained, since a traced step keeps the first one."""

import ast

from ...examiner.blame import (
    called_at,
    calls_in_file,
    function_at,
    innermost,
    is_tf_function,
    name_of,
)
from ...examiner.recording import Recording
from ...examiner.rule import Steps, line_of, observed, rule
from ...observer.events import (
    Frame,
    GradientsApplied,
    Owner,
    PythonValueFrozen,
    Stack,
    StepsCounted,
    VariableMade,
)

FOR_OPTIMIZERS = (
    "make the `tf.function` anew for each optimizer, or keep the optimizer and change its settings, as with "
    "`learning_rate.assign`"
)


@rule("fm70", explains_divergence=False)
def only_the_first_is_used(run: Recording) -> Steps:
    yield from [*first_model(run)] or [*first_optimizer(run)]


def first_model(run: Recording) -> Steps:
    """Checks for a model and an optimizer that were made again, at the same lines, and of which neither is used to train.

    What is loaded, or written by the program, may be made for that alone: one of several later ones has to be neither.
    """
    is_whole = run.is_unchanged and run.finished
    if not is_whole or not any(each.graph_calls for each in run.of(StepsCounted)):
        return
    filled = run.loaded | run.written_by(Owner.USER)
    updates = run.of(GradientsApplied)
    used = run.trained.union(*(each.optimizer.variables for each in updates))
    for first in updates:
        made = run.of(VariableMade, after=first)
        classes = classes_around(first.location)
        weights = again(run, made, Owner.LAYER, first.optimizer.trains, classes, used)
        slots = again(run, made, Owner.OPTIMIZER, first.optimizer.variables, classes, used)
        unfilled = {each.location[:1] for each in weights if each.number not in filled}
        places = {run.location_of(number)[:1] for number in first.optimizer.trains}
        if slots and weights and places <= unfilled:
            yield observed(
                "fm70",
                run,
                traced_function(first.location),
                "the traced step keeps the first model: the one that is made later is never trained",
                "that was made at ",
                line_of(weights[0].location, "a line of Keras"),
            )
            return


def first_optimizer(run: Recording) -> Steps:
    """Checks for an optimizer in whose place another was put, while a graph goes on with the first."""
    for first in [each for each in run.of(PythonValueFrozen) if each.is_optimizer][:1]:
        later = "another one" if first.traced == first.now else f"{first.now} that is made later"
        message = (
            f"the traced step keeps the first {first.name}, {first.traced}: {later} takes no step"
        )
        proof = "the program has put another in its place, and the same graph ran again"
        line = traced_function(first.location)
        yield observed("fm70", run, line, message, proof, fix=FOR_OPTIMIZERS)


def again(
    run: Recording,
    made: list[VariableMade],
    maker: Owner,
    first: tuple[int, ...],
    classes: set[str],
    used: frozenset[int],
) -> list[VariableMade]:
    """Returns what was made later as the first, if nothing of it is trained or used by an optimizer that trains.

    That is by the same calls, as in a loop, or by a method of the class of the step, which may be called from elsewhere.
    """
    places = {run.location_of(number) for number in first} - {()}
    own = {stack[0] for stack in places if classes_around(stack[:1]) & classes}
    later = [
        each
        for each in made
        if each.maker is maker and (each.location in places or {*each.location[:1]} & own)
    ]
    return later if not used & {each.number for each in later} else []


def classes_around(stack: Stack) -> set[str]:
    found = [innermost(frame, ast.ClassDef) for frame in stack]
    return {each.name for each in found if each}


def traced_function(stack: Stack) -> Stack:
    """Returns the line of the function that `tf.function` decorates, or is given; else the one that updates the weights."""
    for i, frame in enumerate(stack):
        function = function_at(frame)
        for call in calls_in_file(frame.path):
            if is_tf_function(call.func) and frame.function in map(name_of, call.args):
                return (frame._replace(line=call.lineno), *stack[i:])
        if "function" in called_at(frame):
            return stack[i:]
        if isinstance(function, ast.FunctionDef) and any(
            map(is_tf_function, function.decorator_list)
        ):
            return (Frame(frame.path, function.lineno, function.name), *stack[i:])
    return stack
