"""Blames, for fm18, the line that chose how many cores each replica of the last strategy has."""

import ast

from ...examiner import blame
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack, StrategyMade

# Where each call takes what decides about the cores: the name of the argument, and its position.
CHOICES = {
    "TPUStrategy": ("experimental_device_assignment", 1),
    "build": ("computation_shape", 1),
}


@blames("fm18")
def strategy_given(recording: Recording, stack: Stack) -> Stack:
    strategy = recording.last(StrategyMade)
    return from_cores(blame.from_caller(strategy.location if strategy else stack))


def from_cores(stack: Stack) -> Stack:
    """Returns the line from which a strategy has its device assignment, and that its computation shape."""
    for call in blame.calls_in(blame.statement_at(stack[0])) if stack else []:
        name, position = CHOICES.get(blame.called_name(call), ("", 0))
        values = [each.value for each in call.keywords if name and each.arg == name]
        values += call.args[position : position + 1] if name else []
        for value in values:
            if isinstance(value, ast.Name):
                assigned = blame.last_assignment(stack[0], value.id)
                return from_cores((assigned, *stack)) if assigned else stack
    return stack
