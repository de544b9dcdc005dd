"""Checks fm39: a mean of shares is printed. Blames the line that gives a value of all replicas to what takes one value."""

from collections.abc import Sequence

from ...examiner.blame import (
    assigned_value,
    called_at,
    called_name,
    calls_in,
    computes_gradient,
    from_caller,
    functions_in,
    is_over_replicas,
    last_assignment,
    names_in,
    returns_in,
    statement_at,
)
from ...examiner.printed import (
    is_of_one_replica,
    printed_difference,
    program_files,
    source_of,
)
from ...examiner.recording import Recording
from ...examiner.rule import Runs, Steps, blames, compared, reclassify, rule_of_runs
from ...observer.events import ExceptionRaised, Frame, Stack

REDUCE = (
    'reduce the values of all replicas to one: `strategy.reduce("SUM", values, axis=None)`, or "MEAN" where each of them is a '
    "mean of as many examples"
)


@rule_of_runs("fm39", last=True)
def share_is_printed(runs: Runs) -> Steps:
    """Checks a number of one replica alone that is printed, and a loss, right for the updates, of which a mean of shares is."""
    difference = yield from printed_difference(runs)
    if difference is None or not (location := source_of(difference)):
        return
    if is_of_one_replica(location):
        message = f"{difference}: it is the value of one replica"
        yield compared("fm39", difference.counts, location, message, fix=REDUCE)
    elif difference.is_by_replicas and difference.is_loss and difference.factor < 1:
        message = f"{difference}: each replica returns a share of the loss, which is the sum of these and not their mean"
        yield compared("fm39", difference.counts, location, message)


@blames("fm39")
def giving_line(recording: Recording, stack: Stack) -> Stack:
    chosen = from_caller(stack)
    returned = returned_unreduced(chosen[0], program_files(recording)) if chosen else None
    return (returned, *chosen) if returned else chosen


def returned_unreduced(frame: Frame, paths: Sequence[str]) -> Frame | None:
    """Returns what a function returns whose result this line takes, if that reduces others of its results."""
    statement = statement_at(frame)
    names = dict.fromkeys(names_in(statement))
    assigned = [assigned_value(last_assignment(frame, name)) for name in names]
    called = [called_name(call) for node in (statement, *assigned) for call in calls_in(node)]
    for path, function in functions_in((frame.path, *paths), *called):
        returns = returns_in(function)
        reduces = any(is_over_replicas(call, {"reduce"}) for call in calls_in(function))
        if reduces and returns:
            return Frame(path, returns[-1].lineno, function.name)
    return None


@reclassify("fm39")
def unless_in_step(run: Recording, mode: str, raised: ExceptionRaised, stack: Stack) -> str:
    """Tells a step that gets a distributed batch, since it is called without `strategy.run`, from what uses its results."""
    runs = any("run" in called_at(frame) for frame in stack)
    return "fm31" if any(map(computes_gradient, stack)) and not runs else mode
