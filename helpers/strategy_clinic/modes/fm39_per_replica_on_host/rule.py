"""Blames, for fm39, the line that gives a value of all replicas to functions which take one value."""

from ...examiner.blame import (
    called_at,
    called_name,
    calls_in_file,
    computes_gradient,
    from_caller,
    function_at,
)
from ...examiner.recording import Recording
from ...examiner.rule import blames, reclassify
from ...observer.events import ExceptionRaised, Frame, Stack


@blames("fm39")
def giving_line(recording: Recording, stack: Stack) -> Stack:
    return from_caller(with_caller(stack))


def with_caller(stack: Stack) -> Stack:
    """Adds the only call of a traced function where the message of an error leaves its line out."""
    for i, (frame, caller) in enumerate(zip(stack, stack[1:])):
        function = function_at(frame)
        if function and function.name == frame.function and function.name not in called_at(caller):
            calls = [c for c in calls_in_file(frame.path) if called_name(c) == function.name]
            if len(calls) == 1:
                return (*stack[: i + 1], Frame(frame.path, calls[0].lineno, ""), *stack[i + 1 :])
            break
    return stack


@reclassify("fm39")
def unless_in_step(run: Recording, mode: str, raised: ExceptionRaised, stack: Stack) -> str:
    """Tells a step that gets a distributed batch, since it is called without `strategy.run`, from what uses its results."""
    runs = any("run" in called_at(frame) for frame in stack)
    return "fm31" if any(map(computes_gradient, stack)) and not runs else mode
