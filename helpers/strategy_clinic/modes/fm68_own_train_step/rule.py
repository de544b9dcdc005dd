"""Checks fm68: a step of the program's own reports a loss that is divided or multiplied by the number of replicas, or no loss."""

import ast

from ...examiner.blame import (
    called_name,
    calls_in,
    function_at,
    given_in,
    name_of,
    names_in,
    nodes_under,
    parameters,
    returns_in,
    statement_at,
)
from ...examiner.findings import Location, Note, Text
from ...examiner.recording import Recording
from ...examiner.reported import (
    is_scaled,
    line_in_step,
    own_steps,
    returned_in_step,
    updates,
)
from ...examiner.rule import Runs, Steps, compared, least_and_most, observed, rule, rule_of_runs
from ...observer.events import (
    ExamplesTaken,
    Frame,
    MetricsReported,
    Owner,
    Stack,
    StepEnded,
    VariableWritten,
)

MODE = "fm68"
SMALL = 0.05  # of the size of a weight
STEPS = {"loss": "train_step", "val_loss": "test_step"}
TRACK = "make a `tf.keras.metrics.Mean` of this name in `__init__`, update it in the step, and return its `result()`"
TRACKED = f"{TRACK}; a loss that is divided by the global batch is first multiplied by the number of replicas"
REPLICAS = "`tf.distribute.get_strategy().num_replicas_in_sync`"
MULTIPLIED = (
    f"report the share of each replica: divide it by {REPLICAS}, or do not multiply it by that"
)
ONE_BY_ONE = (
    "update the metrics one by one: the one that is named `loss` with the loss, and the others with the targets and the "
    "predictions"
)


@rule_of_runs(MODE, explains_divergence=False)
def part_of_loss(runs: Runs) -> Steps:
    yield from scaled_reports(runs, is_part=True)


@rule_of_runs(MODE, explains_divergence=False, last=True)
def sum_of_losses(runs: Runs) -> Steps:
    """Checks for a report that is multiplied: a penalty that each replica adds whole is reported so, too."""
    yield from scaled_reports(runs, is_part=False)


def scaled_reports(runs: Runs, *, is_part: bool) -> Steps:
    pair = least_and_most(runs.matched, lambda each: each.finished)
    # A report is a mean over an epoch: what differs little, or late, changes it by no factor.
    apart = [each for each in runs.divergences if each.step == 1 and each.distance > SMALL]
    if pair is None or any(each.one is pair[0] for each in apart):
        return
    (one, other), (few, many) = map(first_values, pair), (each.replicas for each in pair)
    factor = few / many if is_part else many / few
    told: set[str] = set()  # a step says one thing of all losses that it reports
    for name in reversed(one):
        step = step_of(name)
        line = line_in_step(pair[1], name, [step])
        if name.endswith("loss"):
            line = line or line_of_report(pair[1], step)
        if line and step not in told and is_scaled(one[name], other.get(name, 0.0), factor):
            told.add(step)
            done = "divided" if is_part else "multiplied"
            what = "loss" if name.endswith("loss") else "metric"
            says = f"`{step}` reports a {what} that is {done} by the number of replicas"
            values = f"{name} is {one[name]:.6g} on {few} and {other[name]:.6g} on {many} devices"
            fix = "" if is_part else MULTIPLIED
            yield compared(MODE, (few, many), line, f"{says}: {values}", fix=fix)


@rule(MODE, explains_divergence=False)
def never_updated(recording: Recording) -> Steps:
    """Checks for a number that is 0.0 in each report, though a step returns it: that of a metric which has the same name."""
    names = {each.name for report in recording.of(MetricsReported) for each in report.metrics}
    for name in sorted(names) if recording.finished and recording.of(StepEnded) else ():
        step = step_of(name)
        values = values_in_fit(recording, name)
        line = returned_in_step(recording, name, [step])
        if line and values and not any(values) and is_left_as_made(recording, name, step):
            message = f"`fit` reports not the {name} that `{step}` returns, but the metric of this name, which it does not update"
            proof = f"the weights have changed, and {name} is 0.0 in all {len(values)} reports"
            yield observed(MODE, recording, line, message, proof, fix=TRACKED)


@rule(MODE, explains_divergence=False)
def of_last_batch(recording: Recording) -> Steps:
    """Notes that `fit` reports numbers of the last batches: no run tells how far they are from means, and it may be meant."""
    batches = [each.batches for each in recording.of(ExamplesTaken) if each.in_fit]
    in_step = (
        each.writer in (Owner.METRIC, Owner.USER)
        and any(frame.function == "train_step" for frame in each.location)
        for each in recording.of(VariableWritten)
    )
    if not recording.finished or max(batches, default=0) < 2 or any(in_step):
        return
    reported = [each for report in recording.of(MetricsReported) for each in report.metrics]
    names = dict.fromkeys(each.name for each in reported if each.value)
    for name in sorted(names, key=lambda each: each != "loss"):
        if line := returned_in_step(recording, name, ["train_step"]):
            says = f" returns no result of a metric: `fit` reports the {name} of the last batch of an epoch, and no mean"
            yield Note(Text(Location(line), f"{says}. To report a mean, {TRACK} (fm68)"))
            return


def values_in_fit(recording: Recording, name: str) -> list[float]:
    """Returns what is reported under a name on the first line that reports it."""
    reported = [
        (report.location, each.value)
        for report in recording.of(MetricsReported)
        for each in report.metrics
        if each.name == name
    ]
    return [value for location, value in reported if location == reported[0][0]]


def is_left_as_made(recording: Recording, name: str, step: str) -> bool:
    """Tells whether a metric of this name exists, to which a step writes nothing; Keras has one of the loss."""
    metric = name.removeprefix("val_")
    made = any(recording.name_of(number).startswith(f"{metric}/") for number in recording.variables)
    written = any(each[0].function == step for each in updates(recording, name))
    return name in ("loss", "val_loss") or made and not written


@rule(MODE, explains_divergence=False)
def updated_with_targets(recording: Recording) -> Steps:
    """Checks for a metric of the loss that a step updates with the targets of its batch, as it does all other metrics."""
    for written in recording.of(VariableWritten):
        name, frame = recording.name_of(written.number), next(iter(written.location), None)
        is_of_loss = name.startswith("loss/") and written.writer is Owner.METRIC
        if not is_of_loss or not frame or frame.function not in STEPS.values():
            continue
        updates = [each for each in calls_in(statement_at(frame)) if is_update(each)]
        given = [name_of(argument) for call in updates for argument in call.args[:1]]
        if given and {*given} <= parts_of_batch(frame):
            call = f"`{ast.unparse(updates[0])}`"
            message = f"`{frame.function}` updates the metric of the loss by {call}: `fit` does not report the loss"
            proof = f"{name} was written here, and `{given[0]}` is a part of the batch"
            yield observed(MODE, recording, written.location, message, proof, fix=ONE_BY_ONE)
            return


def step_of(name: str) -> str:
    """Returns the step that reports a metric under this name in `fit`."""
    return STEPS["val_loss" if name.startswith("val_") else "loss"]


def parts_of_batch(frame: Frame) -> set[str]:
    """Returns the names that a function gives to parts of its arguments, other than to what it computes from them."""
    step = function_at(frame)
    batch = {*parameters(step)[1:]}
    for target, value in [pair for each in nodes_under(step) for pair in given_in(each)]:
        calls = [called_name(call) for call in calls_in(value)]
        is_part = all(name.startswith("unpack_") for name in calls)
        batch |= {name_of(target)} if is_part and batch & {*names_in(value)} else set()
    return batch


def first_values(recording: Recording) -> dict[str, float]:
    """Returns what is reported in the first epoch that has it, the last one first."""
    metrics = [each for report in recording.of(MetricsReported) for each in report.metrics]
    return {each.name: each.value for each in reversed(metrics)}


def line_of_report(recording: Recording, step: str) -> Stack:
    """Returns the line of the program's own step that gives a value to a metric; else the one that returns."""
    for path, function in own_steps(recording, [step]):
        updates = [call for call in calls_in(function) if is_update(call) and len(call.args) == 1]
        lines = [call.lineno for call in updates]
        lines += [each.lineno for each in returns_in(function)]
        if lines:
            return (Frame(path, lines[0], step),)
    return ()


def is_update(call: ast.Call) -> bool:
    return called_name(call) == "update_state"
