"""Checks fm23: a variable that no strategy distributes, and that each of its replicas writes to; it may be an optimizer's."""

import ast
from collections.abc import Iterator

from ...examiner.blame import (
    SUMS,
    assigned_value,
    called_name,
    calls_in,
    from_strategy,
    last_assignment,
    nodes_under,
    statement_at,
)
from ...examiner.findings import Finding
from ...examiner.recording import Recording
from ...examiner.rule import line_of, observed, rule
from ...observer.events import Frame, Loaded

OF_PART = {*SUMS, "count_nonzero", "shape", "size"}  # over the part of a replica


@rule("fm23")
def written_by_replicas(recording: Recording) -> Iterator[Finding]:
    # What a load outside the scope has made is fm25.
    loads = [load for load in recording.of(Loaded) if load.function == "load"]
    loaded = {number for load in loads for number in load.undistributed}
    for number, write in recording.written_outside.items():
        if number in loaded or any(map(adds_part, write.location[:1])):
            continue
        yield observed(
            "fm23",
            recording,
            from_strategy(recording.location_of(number)),
            f"{recording.name_of(number)} was made outside the scope, and every replica writes to it",
            f"{write.replicas} replicas wrote to it at ",
            line_of(write.location, "a step"),
        )


@rule("fm23")
def optimizer_outside_scope(recording: Recording) -> Iterator[Finding]:
    for number, update in list(recording.shared_slots.items())[:1]:
        name, kind = recording.name_of(number), update.optimizer.kind
        first = min(filter(recording.is_single_slot, update.optimizer.variables))
        yield observed(
            "fm23",
            recording,
            from_strategy(recording.location_of(first)) or update.location,
            f"this {kind} was made outside the scope: {name} exists once, and every replica updates it",
            f"each of {recording.replicas} replicas has its own copy of the weights that it trains at ",
            line_of(update.location, "a step"),
        )


def adds_part(frame: Frame) -> bool:
    """Tells whether a line adds a sum over the part of a replica: all replicas together add what one device adds alone."""
    calls = [each for each in calls_in(statement_at(frame)) if called_name(each) == "assign_add"]
    added = [value for call in calls for value in call.args[:1]]
    return bool(added) and all(is_sum(assigned_to(frame, value)) for value in added)


def assigned_to(frame: Frame, value: ast.expr) -> ast.expr:
    """Returns what a name was given last, or else the value itself."""
    name = value.id if isinstance(value, ast.Name) else ""
    return assigned_value(last_assignment(frame, name)) or value


def is_sum(value: ast.expr) -> bool:
    names = {called_name(node) for node in nodes_under(value) if isinstance(node, ast.Call)}
    return bool(names & OF_PART) and names <= OF_PART | {"cast", "add_n"}
