"""Checks fm44: the same examples have the same loss on other devices, and a metric that the program chose has another value."""

import ast
import math
from collections.abc import Sequence
from dataclasses import replace

from ...examiner.blame import (
    called_name,
    calls_in,
    functions_named,
    keyword,
    nodes_of_file,
    returns_in,
    statement_at,
    values_under,
    with_keyword,
)
from ...examiner.divergence import nudged_run
from ...examiner.printed import (
    is_of_one_replica,
    is_through_last_batch,
    printed_difference,
    program_files,
    source_of,
)
from ...examiner.recording import Recording
from ...examiner.rule import Answers, Runs, Steps, compared, least_and_most, rule_of_runs
from ...observer.events import Frame, MetricsReported, Stack, StepEnded

FIX = (
    "add up what the replicas return, with each part divided by the examples of the whole batch: "
    '`strategy.reduce("SUM", ..., axis=None)`'
)
NEAR = 0.05  # of a factor
SAME_LOSS, OTHER_METRIC = 1e-4, 2e-3  # relative: correct metrics agree as the loss does
OTHER_VALUE = 1e-4  # of a function of the program, which returns one number for a batch
CLEARLY = (
    10  # times as far apart as the loss is, or as the metric with other last digits of the weights
)


@rule_of_runs("fm44")
def reported_differently(runs: Runs) -> Steps:
    pair = least_and_most(runs.matched, lambda each: each.finished)
    if pair is None:
        return
    few, many = (each.replicas for each in pair)
    for one, other in reports(*pair):
        values, others = (
            {each.name: each.value for each in report.metrics} for report in (one, other)
        )
        # Where the trainings differ, their metrics do, too: then only a factor shows that it is the metric.
        apart = any(each.one is pair[0] for each in runs.divergences)
        is_compared = bool(pair[0].of(StepEnded)) and not apart
        of_loss = distance_of_loss(values, others, 0.0 if is_compared else math.inf)
        compiled = other.compiled_at
        differing = [each for each in values if differs(values, others, each, compiled, of_loss)]
        if differing and compiled and of_loss <= SAME_LOSS:
            name = differing[0]
            factor = abs(others[name] / values[name]) if values[name] else 0.0
            if apart and not is_near(factor, (many / few, few / many)):
                return
            least = distance(values, others, name) / CLEARLY
            if not (yield from is_stable(pair[1], other, name, least)):
                return
            same = "loss" if any(each.endswith("loss") for each in values) else "weights"
            message = f"{name} is {values[name]:.6g} on {few} and {others[name]:.6g} on {many} devices, with the same {same}"
            location = from_metrics(compiled, name, program_files(pair[1]))
            yield compared("fm44", (few, many), location, message)
            return


@rule_of_runs("fm44", last=True)
def printed_differently(runs: Runs) -> Steps:
    """Checks the numbers that the program prints itself.

    A loss that grows with the devices is fm37, a mean of means fm19, and the value of one replica fm39.
    """
    difference = yield from printed_difference(runs)
    if difference is None or difference.is_by_replicas and difference.is_loss:
        return
    is_mean_of_means = not difference.is_by_replicas and (yield from is_through_last_batch(runs))
    location = source_of(difference)
    if location and not is_mean_of_means and not is_of_one_replica(location):
        finding = compared("fm44", difference.counts, location, str(difference))
        yield replace(finding, fix=FIX)


def is_near(factor: float, wanted: tuple[float, ...]) -> bool:
    return any(abs(factor - each) <= NEAR * each for each in wanted)


def is_stable(
    recording: Recording, report: MetricsReported, name: str, least: float
) -> Answers[bool]:
    """Tells whether a metric stays as it is if the last digits of the weights change: an accuracy jumps by whole examples."""
    nudged = yield nudged_run(recording)
    for each, same in reports(recording, nudged) if nudged else []:
        if each is report:
            values, others = (
                {metric.name: metric.value for metric in of.metrics} for of in (each, same)
            )
            return distance(values, others, name) <= least
    return nudged is None


def reports(one: Recording, other: Recording) -> list[tuple[MetricsReported, MetricsReported]]:
    """Returns what both runs report, in order, where it comes from the same lines."""
    pairs = zip(one.of(MetricsReported), other.of(MetricsReported))
    return [(mine, theirs) for mine, theirs in pairs if mine.location == theirs.location]


def distance(values: dict[str, float], others: dict[str, float], name: str) -> float:
    """Returns how far two values of a metric are apart, relative to the first; infinity if there are not two."""
    if name not in values or name not in others:
        return math.inf
    return abs(values[name] - others[name]) / (1e-6 + abs(values[name]))


def distance_of_loss(values: dict[str, float], others: dict[str, float], default: float) -> float:
    """Returns how far the loss is apart, or what a `train_step` of the program calls one; `default` if it calls nothing so."""
    losses = ["loss"] if "loss" in values else [name for name in values if name.endswith("loss")]
    return max((distance(values, others, name) for name in losses), default=default)


def differs(
    values: dict[str, float],
    others: dict[str, float],
    name: str,
    compiled_at: Stack,
    of_loss: float,
) -> bool:
    if name not in others or name.endswith("loss"):
        return False
    is_own = compiled_at and returns_of_metric(compiled_at[0], name)
    limit = OTHER_VALUE if is_own else OTHER_METRIC
    limit = max(limit, CLEARLY * of_loss)
    return not distance(values, others, name) <= limit  # also if one is NaN


def from_metrics(stack: Stack, metric: str, paths: Sequence[str]) -> Stack:
    """Returns the line that returns a metric; else the one that gives metrics to `compile`.

    Where `compile` gets none, a step of the program reports the metric by its name.
    """
    reported = [] if metrics_in(stack[0]) else reported_at(paths, metric.removeprefix("val_"))
    if reported:
        return (reported[0], *stack)
    lines = returns_of_metric(stack[0], metric)
    if lines:
        return (stack[0]._replace(line=lines[0]), *stack[1:])
    results = results_of_classes(stack[0], paths)
    named = results.get(metric.removeprefix("val_").replace("_", ""), [])
    only = [frame for frames in results.values() for frame in frames] if len(results) == 1 else []
    return (*(named or only)[:1], *stack) if named or only else with_keyword(stack, "metrics")


def results_of_classes(frame: Frame, paths: Sequence[str]) -> dict[str, list[Frame]]:
    """Returns where classes of the program that `compile` gets return their result, by their names in small letters."""
    called = {called_name(call) for given in metrics_in(frame) for call in calls_in(given)}
    return {
        made.name.lower(): [
            Frame(path, each.lineno, "result")
            for result in functions_named(made.body, "result")
            for each in returns_in(result)
        ]
        for path in paths
        for made in nodes_of_file(path, ast.ClassDef)
        if made.name in called
    }


def reported_at(paths: Sequence[str], name: str) -> list[Frame]:
    """Returns the lines that put a value under this name into a dict, and then those that make an object of this name."""
    put = [(path, value) for path in paths for value in values_under(nodes_of_file(path), name)]
    made = [
        (path, word.value)
        for path in paths
        for word in nodes_of_file(path, ast.keyword)
        if word.arg == "name" and getattr(word.value, "value", "") == name
    ]
    return [Frame(path, value.lineno, "") for path, value in (*put, *made)]


def returns_of_metric(frame: Frame, metric: str) -> list[int]:
    """Returns the lines in which a function of the file returns the metric that has its name."""
    named = functions_named(nodes_of_file(frame.path), metric.removeprefix("val_"))
    return [each.lineno for each in returns_in(named[0])] if named else []


def metrics_in(frame: Frame) -> list[ast.expr]:
    given = [keyword(call, "metrics") for call in calls_in(statement_at(frame))]
    return [each for each in given if each is not None]
