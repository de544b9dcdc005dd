"""Checks fm64: data of `fit` or `evaluate` have ended under a strategy, and they came from a Python generator."""

import ast
from collections.abc import Iterator

from ...examiner.blame import (
    called_name,
    calls_in,
    functions_named,
    keyword,
    nodes_of_file,
    only_value,
    statement_at,
)
from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import observed, rule
from ...observer.events import DataRanOut, Frame, StrategyMade

READERS = ("fit", "evaluate")
MESSAGE = (
    "Keras 3 reads batches of a Python generator under a strategy to learn their shape, and loses those "
    "that it cannot give back"
)


@rule("fm64", explains_divergence=False)
def generator_given(recording: Recording) -> Iterator[Finding]:
    if recording.keras_used == 2 or not recording.of(StrategyMade):
        return  # Keras 2 does not warn of an end without a number of steps, either
    for ended in recording.of(DataRanOut):
        if ended.location and not ended.steps and takes_generator(ended.location[0]):
            proof = "the data ended, and nobody has asked for a number of steps"
            yield observed("fm64", recording, ended.location, MESSAGE, proof)


def takes_generator(frame: Frame) -> bool:
    calls = [call for call in calls_in(statement_at(frame)) if called_name(call) in READERS]
    given = [each for call in calls for each in (*call.args[:1], keyword(call, "x")) if each]
    return any(is_generator(each, frame) for each in given)


def is_generator(value: ast.expr | None, frame: Frame) -> bool:
    """Tells whether an expression, or the only value of a name, is a generator that the file defines."""
    if isinstance(value, ast.Name):
        value = only_value(frame, value.id)
    return isinstance(value, ast.GeneratorExp) or (
        isinstance(value, ast.Call) and yields(called_name(value), frame.path)
    )


def yields(name: str, path: str) -> bool:
    functions = functions_named(nodes_of_file(path), name)
    found = [node for function in functions for node in ast.walk(function)]
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in found)
