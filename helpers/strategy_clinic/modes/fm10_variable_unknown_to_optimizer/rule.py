"""Checks fm10: what becomes trainable after `compile` is not trained. Blames, for its exception, who gave the optimizer more."""

import ast
from collections.abc import Iterable

from ...examiner import blame
from ...examiner.recording import Recording
from ...examiner.rule import Steps, advises, blames, observed, rule
from ...observer.events import (
    Frame,
    GradientsApplied,
    Loaded,
    ModelCompiled,
    Owner,
    Stack,
    TrainableLeftOut,
    UsedOptimizerCompiled,
    VariableMade,
)

IN_KERAS_FILE = (
    "save the model as a `.keras` file: Keras 3 loads the optimizer of an `.h5` file without the variables that it trains; after "
    "the load of an `.h5` file compile again, which makes an optimizer without moments"
)
TRAIN_ALL = (
    "make the traced step, and the list of the weights that it trains, anew after this line, and build the optimizer with all "
    "weights before the first step"
)
COMPILE_AGAIN = "compile again after this line, between two calls of `fit`: a callback cannot do it"
SET_AGAIN = (
    "set it to False before, and to True then, or set it for each layer inside: Keras is wrong here"
)


@rule("fm10", explains_divergence=False)
def left_out(recording: Recording) -> Steps:
    """Checks for trainable variables that no step has trained: its graph, or its list of weights, was made before."""
    for left in [each for each in recording.of(TrainableLeftOut) if each.location][:1]:
        name, count = recording.name_of(left.numbers[0]), len(left.numbers)
        what, line, fix = name + (f" and {count - 1} more" if count > 1 else ""), left.location, ""
        proof = "its optimizer got no gradients of them"
        message = f"no step trains {what}, which became trainable here"
        if left.is_unfreezing:
            fix = TRAIN_ALL
        elif left.is_ignored:
            message = f"this leaves {what} frozen: `trainable` was True already, and Keras 3 sets it in no layer inside then"
            proof, fix = "they were not trainable at the end", SET_AGAIN
        else:
            line, fix = from_unfreezing(left.location), COMPILE_AGAIN
            message = (
                f"`fit` does not train {what}, which became trainable after the model was compiled"
            )
        keras = left.is_ignored
        yield observed("fm10", recording, line, message, proof, fix=fix, by_framework=keras)


@blames("fm10")
def compiled_again(recording: Recording, stack: Stack) -> Stack:
    compiled = recording.last(UsedOptimizerCompiled)
    if compiled:
        return compiled.location
    if found := compiled_for_another(recording):
        return found
    for made in recording.of(VariableMade):
        is_slot = made.maker is Owner.OPTIMIZER and made.shape
        if is_slot and blame.calls_at(made.location, "build"):
            applied = {
                name for frame in stack for name in blame.owners_at(frame, "apply_gradients")
            }
            is_another = applied and not applied & blame.owners_at(made.location[0], "build")
            return recording.optimizer_made_at if is_another else made.location
    made_at = blame.from_factory(recording.optimizer_made_at)
    return unfrozen_before(stack) or blame.from_maker(stack, made_at)


def compiled_for_another(recording: Recording) -> Stack:
    """Returns the line that compiled the model of the last update, if its optimizer has trained another compiled model alone."""
    updates, compiled = recording.of(GradientsApplied), recording.of(ModelCompiled)
    for early in updates[:-1]:
        mine, others = {*updates[-1].optimizer.trains}, {*early.optimizer.trains}
        is_shared = {*early.optimizer.variables} & {*updates[-1].optimizer.variables}
        fitting = [each for each in compiled if mine <= {*each.variables}]
        is_another = any(others <= {*each.variables} for each in compiled if each not in fitting)
        if mine and others and is_shared and is_another and fitting:
            return fitting[-1].location
    return ()


@advises("fm10")
def of_hdf5(recording: Recording, stack: Stack) -> str:
    loads = [each.path for each in recording.of(Loaded) if each.function == "load"]
    return IN_KERAS_FILE if loads and loads[-1].endswith((".h5", ".hdf5")) else ""


def unfrozen_before(stack: Stack) -> Stack:
    """Returns the last line before a call of the stack, in the function of the call, that makes something trainable."""
    for i, frame in enumerate(stack):
        if found := last_unfreezing(blame.nodes_under(blame.function_at(frame)), frame):
            return (found, *stack[i:])
    return ()


def last_unfreezing(nodes: Iterable[ast.AST], frame: Frame) -> Frame | None:
    """Returns the last of the lines above this one that makes something trainable."""
    given = [pair for node in nodes for pair in blame.given_in(node)]
    lines = [target.lineno for target, value in given if is_unfreezing(target, value)]
    above = [line for line in lines if line < frame.line]
    return frame._replace(line=max(above)) if above else None


def is_unfreezing(target: ast.expr, value: ast.expr) -> bool:
    is_trainable = isinstance(target, ast.Attribute) and target.attr == "trainable"
    return is_trainable and blame.is_constant(value, True)


def from_unfreezing(stack: Stack) -> Stack:
    """Returns the last line above a `fit` that makes something trainable; if none does, the line that chose what is fitted."""
    found = last_unfreezing(blame.nodes_of_file(stack[0].path), stack[0])
    if found:
        return (found, *stack)
    calls = blame.calls_in(blame.function_at(stack[0]))
    compiles = "compile" in map(blame.called_name, calls)
    return stack if compiles else blame.from_owner(stack, "fit")
