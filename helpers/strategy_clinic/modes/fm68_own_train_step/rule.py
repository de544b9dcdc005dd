"""Checks fm68: the same training reports a loss that is divided by the number of replicas, by a step of the program's own."""

import ast
from collections.abc import Iterator

from ...examiner.blame import called_name, functions_named, nodes_of_file
from ...examiner.findings import Finding
from ...examiner.printed import program_files
from ...examiner.recording import Recording
from ...examiner.rule import Runs, compared, rule_of_runs
from ...observer.events import Frame, MetricsReported, Stack

MODE = "fm68"
STEPS = {"loss": "train_step", "val_loss": "test_step"}
NEAR = 1e-3  # of the factor


@rule_of_runs(MODE, explains_divergence=False)
def part_of_loss(runs: Runs) -> Iterator[Finding]:
    by_count = {recording.replicas: recording for recording in runs.matched if recording.finished}
    few, many = min(by_count, default=1), max(by_count, default=1)
    if few == many or any(each.one is by_count[few] for each in runs.divergences):
        return
    one, other = losses_of(by_count[few]), losses_of(by_count[many])
    for name in [name for name in one if is_near(other.get(name, 0.0), one[name] * few / many)]:
        if line := line_of_report(by_count[many], STEPS[name]):
            step = f"`{STEPS[name]}` reports a loss that is divided by the number of replicas"
            message = f"{step}: {one[name]:.6g} on {few} and {other[name]:.6g} on {many} devices"
            yield compared(MODE, (few, many), line, message)


def losses_of(recording: Recording) -> dict[str, float]:
    """Returns the losses of the first epoch that has them."""
    metrics = [each for report in recording.of(MetricsReported) for each in report.metrics]
    return {each.name: each.value for each in reversed(metrics) if each.name in STEPS}


def is_near(value: float, wanted: float) -> bool:
    return value != 0.0 and abs(value - wanted) <= NEAR * abs(wanted)


def line_of_report(recording: Recording, step: str) -> Stack:
    """Returns the line of the program's own step that gives a value to a metric; else the one that returns."""
    for path in files_of(recording):
        for function in functions_named(nodes_of_file(path), step):
            nodes = [*ast.walk(function)]
            calls = [each for each in nodes if isinstance(each, ast.Call) and updates_loss(each)]
            lines = [call.lineno for call in calls]
            lines += [each.lineno for each in nodes if isinstance(each, ast.Return)]
            if lines:
                return (Frame(path, lines[0], step),)
    return ()


def files_of(recording: Recording) -> list[str]:
    reports = [each.location for each in recording.of(MetricsReported)]
    paths = [frame.path for stack in reports for frame in stack]
    return list(dict.fromkeys([*paths, *program_files(recording)]))


def updates_loss(call: ast.Call) -> bool:
    return called_name(call) == "update_state" and len(call.args) == 1
