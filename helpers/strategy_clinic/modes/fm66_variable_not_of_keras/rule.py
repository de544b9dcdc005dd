"""Checks fm66: a `tf.Variable` that a layer of Keras 3 makes for itself, which Keras does not train."""

import ast

from ...examiner.blame import (
    calls_in,
    functions_named,
    innermost,
    is_constant,
    keyword,
    statement_at,
)
from ...examiner.recording import Recording
from ...examiner.rule import Steps, observed, rule
from ...observer.events import GradientComputed, GradientsApplied, Owner, VariableMade, VariableRead


@rule("fm66", explains_divergence=False, finds_own_program=False)
def never_trained(run: Recording) -> Steps:
    """Checks for a variable that is read in a program that trains, and that nothing writes and no gradient is computed of."""
    if (
        not (run.is_unchanged and run.finished)
        or run.keras_used == 2
        or not run.of(GradientsApplied)
    ):
        return
    connected = {each for computed in run.of(GradientComputed) for each in computed.connected}
    read = {each.number for each in run.of(VariableRead)}
    for number in sorted(read - run.written - run.trained - connected - run.copies):
        made = run.variables.get(number)
        if made and is_weight(made) and is_made_by_layer(made):
            message = f"{made.name} is read and never trained: Keras 3 does not know a `tf.Variable` of a layer"
            yield observed("fm66", run, made.location, message, "no gradient of it was computed")
            return


def is_weight(made: VariableMade) -> bool:
    """Tells whether a variable may be meant to be trained."""
    if made.maker is not Owner.USER or not made.location or "float" not in made.dtype:
        return False
    calls = calls_in(statement_at(made.location[0]))
    return not any(is_constant(keyword(call, "trainable"), False) for call in calls)


def is_made_by_layer(made: VariableMade) -> bool:
    """Tells whether a class makes it that has a method `build` or `call`, as layers and models do, maybe in a `tf.Module`."""
    around = [innermost(frame, ast.ClassDef) for frame in made.location]
    is_called = around[0] and functions_named(around[0].body, "build", "call", "__call__")
    return bool(is_called) and any(
        each and functions_named(each.body, "build", "call") for each in around
    )
