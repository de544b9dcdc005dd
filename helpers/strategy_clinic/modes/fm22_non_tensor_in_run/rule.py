"""Checks fm22: a step takes or returns what is no tensor; blames the line that ends the step, or that gives it the argument."""

import re

from ...examiner import blame
from ...examiner.recording import Recording
from ...examiner.rule import blames, names
from ...observer.events import ExceptionRaised, Stack, StrategyMade

# Messages that say nothing of a strategy, and mean this where the program has made one.
RETURNED = re.compile(
    r"Could not build a TypeSpec for (?!.*(KerasTensor|keras_tensor))"
    r"|A non-DistributedValues value (?!nan|inf|<tf|<Keras)([A-Za-z]\w*|<.*>) cannot be reduced"
    r"|get_devices_from[\s\S]*object has no attribute 'device'"
    r"|\breduce\([\s\S]{,400}AttributeError: '[^']+' object has no attribute 'device'"
)
GIVEN = re.compile(r"Could not generate a generic TraceType for|, in \w*mono_param\b")
VARIABLE = re.compile(r"'SymbolicTensor' object has no attribute 'assign")
AT_CALL = re.compile(
    r"positional args must be a list or tuple|Binding inputs to tf\.function failed"
)


@names("fm22")
def not_a_tensor(recording: Recording, raised: ExceptionRaised) -> bool:
    text = raised.traceback
    return bool(recording.of(StrategyMade) and (GIVEN.search(text) or RETURNED.search(text)))


@blames("fm22")
def end_of_step(recording: Recording, stack: Stack) -> Stack:
    raised = recording.last(ExceptionRaised)
    text = raised.traceback if raised else ""
    if raised and VARIABLE.search(text):
        return raised.location  # outside of the function that is traced
    if AT_CALL.search(text):
        return blame.into_called(stack)
    if GIVEN.search(text):
        return stack
    return blame.from_return(blame.into_called(stack))
