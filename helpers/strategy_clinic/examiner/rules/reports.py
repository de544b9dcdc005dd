"""A metric that is reported otherwise on other numbers of devices. Rules from runs to findings."""

import ast

from ..recording import Finding, Observation
from . import blame
from .divergence import Parting

SAME_LOSS, OTHER_METRIC = 1e-4, 1e-2  # shares of a number: healthy metrics agree as the loss does


def reported_otherwise(runs: list[Observation], partings: list[Parting]) -> list[Finding]:
    """fm44: the same examples have the same loss on other devices, and a metric that the program chose has another value."""
    by_count = {run.replicas(): run for run in runs if run.ended == "finished"}
    few, many = min(by_count, default=1), max(by_count, default=1)
    for one, other in reports_of(by_count[few], by_count[many]) if few < many else ():
        parted = [name for name in one["values"] if parts(one["values"], other["values"], name)]
        if parted and other["compiled"] and agree(one["values"], other["values"], "loss"):
            left, right = one["values"][parted[0]], other["values"][parted[0]]
            says = f"{parted[0]} is {left:.6g} on {few} and {right:.6g} on {many} devices, with the same loss"
            at = from_metrics(other["compiled"])
            return [Finding("fm44", at, says, f"compared {few} and {many} devices", (few, many))]
    return []


def reports_of(one: Observation, other: Observation) -> list[tuple]:
    """What both runs report, in order, as far as it comes from the same lines."""
    pairs = zip(one.of("reported"), other.of("reported"))
    return [pair for pair in pairs if pair[0]["at"] == pair[1]["at"]]


def agree(one: dict, other: dict, name: str, share: float = SAME_LOSS) -> bool:
    known = name in one and name in other
    return known and abs(one[name] - other[name]) <= share * (1e-6 + abs(one[name]))


def parts(one: dict, other: dict, name: str) -> bool:
    is_loss = name.endswith("loss")
    return name in other and not is_loss and not agree(one, other, name, OTHER_METRIC)


def from_metrics(at) -> tuple:
    """Up from `compile` to the line that names the metrics, through functions to which they are passed."""
    at = tuple(at)
    name = metrics_given(at[0])
    while name and len(at) > 1:
        function = blame.function_at(at[0])
        if name not in blame.parameters(function):
            break
        place = blame.parameters(function).index(name)
        at = at[1:]
        name = blame.name_given(at[0], (function.name,), place)
    return at


def metrics_given(frame) -> str:
    """The name that `compile` gets as its metrics."""
    statement = blame.statement_at(frame)
    calls = (
        [each for each in ast.walk(statement) if isinstance(each, ast.Call)] if statement else []
    )
    given = [each.value for call in calls for each in call.keywords if each.arg == "metrics"]
    return next((each.id for each in given if isinstance(each, ast.Name)), "")
