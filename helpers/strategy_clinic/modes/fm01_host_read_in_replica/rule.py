"""Blames, for fm01, the line of a statement that reads the value."""

from ...examiner.blame import called_name, calls_in, statement_at
from ...examiner.recording import Recording
from ...examiner.rule import blames
from ...observer.events import Stack

READS = {"numpy", "get_weights", "get_value"}


@blames("fm01")
def reading_line(recording: Recording, stack: Stack) -> Stack:
    """The line of a traced function is the first line of its statement."""
    calls = calls_in(statement_at(stack[0])) if stack else []
    lines = [each.end_lineno for each in calls if called_name(each) in READS]
    line = lines[0] if lines else None
    return (stack[0]._replace(line=line), *stack[1:]) if line else stack
