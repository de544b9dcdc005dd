"""Finds where a metric that Keras reports gets its value in the program's own code."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from ..observer.events import Frame, MetricsReported, Stack, Use, VariableWritten
from .blame import Function, function_defined, nodes_under, values_under
from .recording import Recording

STEPS = "train_step", "test_step"
NEAR = 1e-3  # of a factor


def own_steps(recording: Recording, steps: Collection[str]) -> Iterator[tuple[str, Function]]:
    """Yields the functions that models have instead of these steps of Keras's, with their files."""
    for each in recording.definitions(Use.STEP):
        function = function_defined(each.location) if each.name in steps else None
        if function:
            yield each.location.path, function


def returned_in_step(recording: Recording, metric: str, steps: Collection[str]) -> Stack:
    """Returns the line of a step of the program's own that puts what is no result of a metric into a dict as this one."""
    for path, function in own_steps(recording, steps):
        for value in values_under(nodes_under(function), metric.removeprefix("val_")):
            if "result(" not in ast.unparse(value):
                return (Frame(path, value.lineno, function.name),)
    return ()


def updates(recording: Recording, metric: str) -> list[Stack]:
    """Returns where the program's own code gives a metric what each replica has; of a validation, the last line first."""
    name = metric.removeprefix("val_")
    by_keras = {each.location for each in recording.of(MetricsReported)}
    found = [
        each.location
        for each in recording.of(VariableWritten)
        if each.replicas and each.location and each.location not in by_keras
        if recording.name_of(each.number).startswith(f"{name}/")
    ]
    return found if metric == name else found[::-1]


def line_in_step(recording: Recording, metric: str, steps: Collection[str] = STEPS) -> Stack:
    """Returns the line of a step of the program's own on which a metric gets its value."""
    updated = [each for each in updates(recording, metric) if each[0].function in steps]
    return returned_in_step(recording, metric, steps) or next(iter(updated), ())


def is_scaled(value: float, other: float, factor: float, near: float = NEAR) -> bool:
    """Tells whether the value of another run is this one times a factor."""
    return other != 0.0 and abs(other - value * factor) <= near * abs(value * factor)
