"""Checks fm07: a graph has a number of Python that the program changes later, or a random number that was drawn once."""

import ast
import builtins
import re

import numpy as np

from ...examiner.blame import called_at, function_at, name_of, nodes_under
from ...examiner.copies import fitted_only, last_difference, state_of_schedule
from ...examiner.recording import Recording
from ...examiner.rule import Steps, observed, reclassify, rule
from ...observer.events import (
    CounterFrozen,
    ExceptionRaised,
    PythonValueFrozen,
    RandomNumberFrozen,
    Stack,
)

LIBRARIES = "tensorflow/python/", "keras/src/"  # which every trace goes through
OF_TENSOR = re.compile(r"tensorflow/python/framework/tensor\.py")  # whose methods trace nothing
CALLBACKS = (
    "on_epoch_",
    "on_batch_",
    "on_train_",
    "on_test_",
    "on_predict_",
)  # which `fit` calls between its graphs

IN_VARIABLE = (
    "keep it in a `tf.Variable(..., trainable=False)` that is changed with `assign`, and compute with `tf.*` all that follows "
    "from it"
)
DRAWN = (
    "draw it in the graph: with `tf.random.*`, or with a `tf.random.Generator` that is made before"
)
BRANCH = ", with `tf.where` or `tf.cond` for `if`"
FROM_STEP = (
    "compute the rate from the argument `step` with `tf.*`, and change nothing of Python there"
)


@rule("fm07")
def value_frozen(recording: Recording) -> Steps:
    for frozen in [each for each in recording.of(PythonValueFrozen) if not each.is_optimizer]:
        message = (
            f"{frozen.name} was {frozen.traced} when this was traced, and stays so in the graph"
        )
        proof = f"the program has set it to {frozen.now} since, and the same graph ran again"
        fix = in_variable(frozen.location, frozen.name)
        yield observed("fm07", recording, frozen.location, message, proof, fix=fix)


@rule("fm07")
def counter_frozen(recording: Recording) -> Steps:
    for frozen in recording.of(CounterFrozen):
        message = f"{frozen.function} counts {frozen.name} only while it is traced"
        proof = f"it is still {frozen.now} after more calls of the same graph"
        fix = in_variable(frozen.location, frozen.name)
        yield observed("fm07", recording, frozen.location, message, proof, fix=fix)


def in_variable(stack: Stack, name: str) -> str:
    """Returns the fix for a value, by whether an `if` asks for it in the function of the line."""
    nodes = nodes_under(function_at(stack[0])) if stack else ()
    tests = [node.test for node in nodes if isinstance(node, ast.If | ast.IfExp | ast.While)]
    asked = [name_of(part) for test in tests for part in ast.walk(test)]
    return IN_VARIABLE + BRANCH if name.rpartition(".")[2] in asked else IN_VARIABLE


@rule("fm07")
def random_number_frozen(recording: Recording) -> Steps:
    for frozen in recording.of(RandomNumberFrozen):
        message = f"{frozen.name} is called once, while {frozen.function} is traced: it gives one value for ever"
        proof = "the generator moved on in the trace, and the graph is used more than once"
        yield observed("fm07", recording, frozen.location, message, proof, fix=DRAWN)


@rule("fm07")
def rate_of_each_replica(recording: Recording) -> Steps:
    when, diverged = last_difference(recording)
    fitted, changed_at = fitted_only(recording), state_of_schedule(recording)
    for first in [each for each in diverged if each.number in fitted and changed_at][:1]:
        message = (
            "a value of Python changes whenever the schedule is called, which is once in each replica while the step is traced: "
            "the rate of a replica never changes, and is another one in each"
        )
        name = recording.name_of(first.number)
        proof = f"the copies of {name} are {first.distance:.2g} of their size apart {when}"
        yield observed("fm07", recording, changed_at, message, proof, fix=FROM_STEP)


@reclassify("fm01", "fm07")
def used_by_python(run: Recording, mode: str, raised: ExceptionRaised, stack: Stack) -> str:
    """Tells a value that Python or NumPy needs, such as an index, from one that a line of the program asks for."""
    called = [name for frame in stack[:1] for name in called_at(frame)]
    is_asked = any(not hasattr(builtins, name) and not hasattr(np, name) for name in called)
    return mode if is_asked else "fm07"


@reclassify("fm07")
def leaked(run: Recording, mode: str, raised: ExceptionRaised, stack: Stack) -> str:
    """Tells a tensor of a finished trace, which raises where nothing is traced, from one that a traced function converts."""
    is_symbolic = "SymbolicTensor" in raised.traceback
    frames = OF_TENSOR.sub("", raised.traceback)
    in_library = any(path in frames for path in LIBRARIES)
    in_callback = any(frame.function.startswith(CALLBACKS) for frame in stack)
    in_trace = raised.traced or (in_library and not in_callback)
    return mode if in_trace or not is_symbolic else "fm33"
