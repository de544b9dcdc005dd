"""Checks fm23: a variable that no strategy distributes, and that each of its replicas writes to; it may be an optimizer's."""

import ast

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
from ...examiner.findings import Note, Text
from ...examiner.recording import Recording, Role
from ...examiner.rule import Steps, line_of, observed, rule
from ...observer.events import (
    BatchTaken,
    ClusterStrategyRequested,
    DatasetFromFunction,
    Frame,
    InputShared,
    KerasDistributionSet,
    Loaded,
    ModelCalled,
    ReplicaCountRead,
    StepsCounted,
    StrategyMade,
    VariableWritten,
)

OF_PART = {*SUMS, "count_nonzero", "shape", "size"}  # over the part of a replica


@rule("fm23")
def written_by_replicas(recording: Recording) -> Steps:
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
def optimizer_outside_scope(recording: Recording) -> Steps:
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


@rule("fm23")
def strategy_unused(run: Recording) -> Steps:
    """Notes a strategy of several replicas that distributes nothing, while the program trains on one device."""
    made = [each for each in run.of(StrategyMade) if each.replicas > 1]
    is_known = run.role is Role.WATCHED and run.finished and not run.of(ClusterStrategyRequested)
    if is_known and made and run.trained and not has_replicas(run):
        yield Note(
            Text(
                f"the {made[0].name} of ",
                line_of(made[0].location, "the program"),
                " distributes no variable and no batch: the program trains on one device; to use all, make model and "
                "optimizer in `strategy.scope()`",
            )
        )


def has_replicas(run: Recording) -> bool:
    """Tells whether the program knows of several replicas, or has something on each of them, whatever it is for."""
    if any(map(run.of, (ReplicaCountRead, DatasetFromFunction, InputShared, KerasDistributionSet))):
        return True
    return (
        any(map(run.is_distributed, run.variables))
        or any(len(each.sizes) > 1 for each in run.of(BatchTaken))
        or any(each.replicas > 1 for each in run.of(ModelCalled))
        or any(each.replicas > 1 for each in run.of(VariableWritten))
        or any(each.eager_runs for each in run.of(StepsCounted))
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
