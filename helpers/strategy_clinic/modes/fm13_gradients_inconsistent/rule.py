"""Checks fm13: gradients that are None were left out of a list, so that others belong to the wrong variables."""

import ast
import re

from ...examiner import blame
from ...examiner.recording import Recording
from ...examiner.rule import Steps, blames, line_of, names, observed, rule
from ...observer.events import ExceptionRaised, GradientComputed, GradientsApplied, Stack

# What TensorFlow says of None where it needs a tensor.
NONE = re.compile(r"None values not supported|Attempt to convert a value \(None\)")


@rule("fm13")
def shifted(recording: Recording) -> Steps:
    for update in recording.of(GradientsApplied):
        computed = recording.of(GradientComputed, until=update)
        last = computed[-1] if computed else None
        if last is None or update.missing or update.gradients != last.total - last.missing:
            continue
        wrong = sorted(set(last.disconnected) & set(update.optimizer.trains))
        if wrong and update.location:
            name = recording.name_of(wrong[0])
            yield observed(
                "fm13",
                recording,
                from_filter(update.location),
                f"{name} has no gradient and gets that of another variable: the list was shortened by {last.missing}",
                f"{last.missing} of {last.total} gradients were None at ",
                line_of(last.location, "a tape"),
                f", and {update.gradients} were applied to the first {update.gradients} variables",
            )
            return


@names("fm13")
def none_among_gradients(recording: Recording, raised: ExceptionRaised) -> bool:
    """Tells whether the program has computed with the gradients, some of which are None."""
    computed = recording.of(GradientComputed)
    is_partial = bool(computed) and 0 < computed[-1].missing < computed[-1].total
    return is_partial and bool(NONE.search(raised.traceback))


def from_filter(stack: Stack) -> Stack:
    """Returns the line above, in the same function, that leaves out some items of what is used here."""
    used = blame.names_in(blame.statement_at(stack[0]))
    return blame.from_leading(stack, used, leaves_out) or stack


def leaves_out(value: ast.expr) -> bool:
    comprehensions = [each for each in ast.walk(value) if isinstance(each, ast.comprehension)]
    return any(each.ifs for each in comprehensions) or "filter" in {
        blame.called_name(call) for call in blame.calls_in(value)
    }


@blames("fm13")
def gradient_with_none(recording: Recording, stack: Stack) -> Stack:
    """Returns the line that computes it, or else the one in a traced function that uses it."""
    computed, raised = recording.last_incomplete_gradient, recording.last(ExceptionRaised)
    is_step = computed and not blame.calls_at(computed, "gradient")
    return stack if is_step and raised and raised.traced else computed or stack
