"""Checks fm44: the same examples have the same loss on other devices, and a metric that the program chose has another value."""

import math
from collections.abc import Collection

from ...examiner.blame import (
    function_defined,
    returns_in,
    with_keyword,
)
from ...examiner.divergence import first_divergence, nudged_run
from ...examiner.findings import Answers
from ...examiner.printed import printed_difference, source_of
from ...examiner.recording import Recording
from ...examiner.reported import is_scaled, line_in_step, updates
from ...examiner.rule import Runs, Steps, compared, least_and_most, rule_of_runs
from ...examiner.whole_batches import whole_batch_counted
from ...observer.events import Definition, Frame, MetricsReported, Stack, StepEnded, Use

FIX = (
    "add up what the replicas return, with each part divided by the examples of the whole batch: "
    '`strategy.reduce("SUM", ..., axis=None)`'
)
NEAR = 0.05  # of a factor
SAME_LOSS, OTHER_METRIC = 1e-4, 2e-3  # relative: correct metrics agree as the loss does
OTHER_VALUE = 1e-4  # of a function of the program, which returns one number for a batch
RESULT = "result"  # the method of a metric that returns its value
CLEARLY = (
    10  # times as far apart as the loss is, or as the metric with other last digits of the weights
)


@rule_of_runs("fm44")
def reported_differently(runs: Runs) -> Steps:
    pair = least_and_most(runs.matched, lambda each: each.finished)
    if pair is None:
        return
    few, many = (each.replicas for each in pair)
    # Where the trainings differ, their metrics do, too: then only a factor shows that it is the metric.
    apart = any(each.one is pair[0] for each in runs.divergences)
    if not apart and first_divergence(*pair):
        return  # the weights differ from run to run, too
    for one, other in reports(*pair):
        values, others = values_in(one), values_in(other)
        is_compared = bool(pair[0].of(StepEnded)) and not apart
        of_loss = distance_of_loss(values, others, 0.0 if is_compared else math.inf)
        compiled = other.compiled_at
        own = functions_in(pair[1], compiled)
        differing = [each for each in values if differs(values, others, each, own, of_loss)]
        factors = many / few, few / many
        for name in differing if compiled and of_loss <= SAME_LOSS else ():
            value, other_value = values[name], others[name]
            exactly = any(is_scaled(value, other_value, factor) for factor in factors)
            if exactly and not apart and line_in_step(pair[1], name):
                continue  # fm68
            if apart and not any(is_scaled(value, other_value, each, NEAR) for each in factors):
                return
            least = distance(values, others, name) / CLEARLY
            if not (yield from is_stable(pair[1], other, name, least)):
                return
            same = "loss" if any(each.endswith("loss") for each in values) else "weights"
            message = f"{name} is {value:.6g} on {few} and {other_value:.6g} on {many} devices, with the same {same}"
            location = from_metrics(pair[1], compiled, name)
            yield compared("fm44", (few, many), location, message)
            return


@rule_of_runs("fm44", last=True)
def printed_differently(runs: Runs) -> Steps:
    """Checks the numbers that the program prints itself.

    A loss that grows with the devices is fm37, a mean of means fm19, and the value of one replica fm39: these have spoken. What
    each replica counts of the whole batch is fm53.
    """
    difference = yield from printed_difference(runs)
    if difference is None or difference.is_by_replicas and difference.is_loss:
        return
    location = source_of(difference)
    if location and not (yield from whole_batch_counted(runs, difference)):
        yield compared("fm44", difference.counts, location, str(difference), fix=FIX)


def is_stable(
    recording: Recording, report: MetricsReported, name: str, least: float
) -> Answers[bool]:
    """Tells whether a metric stays as it is if the last digits of the weights change: an accuracy jumps by whole examples."""
    nudged = yield nudged_run(recording)
    for each, same in reports(recording, nudged) if nudged else []:
        if each is report:
            return distance(values_in(each), values_in(same), name) <= least
    return nudged is None


def reports(one: Recording, other: Recording) -> list[tuple[MetricsReported, MetricsReported]]:
    """Returns what both runs report, in order, where it comes from the same lines."""
    pairs = zip(one.of(MetricsReported), other.of(MetricsReported))
    return [(mine, theirs) for mine, theirs in pairs if mine.location == theirs.location]


def values_in(report: MetricsReported) -> dict[str, float]:
    return {each.name: each.value for each in report.metrics}


def distance(values: dict[str, float], others: dict[str, float], name: str) -> float:
    """Returns how far two values of a metric are apart, relative to the first; infinity if there are not two."""
    if name not in others:
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
    own: Collection[str],
    of_loss: float,
) -> bool:
    if name not in others or name.endswith("loss"):
        return False
    limit = OTHER_VALUE if name.removeprefix("val_") in own else OTHER_METRIC
    limit = max(limit, CLEARLY * of_loss)
    return not distance(values, others, name) <= limit  # also if one is NaN


def functions_in(recording: Recording, compiled_at: Stack) -> set[str]:
    """Returns the names of the metrics that are functions of the program: each returns one number for a batch."""
    metrics = recording.definitions(Use.METRIC, compiled_at)
    return {each.name for each in metrics if each.location.function != RESULT}


def from_metrics(recording: Recording, compiled_at: Stack, metric: str) -> Stack:
    """Returns the line on which the program computes a metric; else the one that gives metrics to `compile`.

    That is where its function returns, where its own code updates it, or where a step of the program reports it by its name.
    """
    name, metrics = metric.removeprefix("val_"), recording.definitions(Use.METRIC, compiled_at)
    functions = [each for each in metrics if each.location.function != RESULT]
    found = [
        line for each in functions if is_named(each, name) for line in returns_of(each.location)
    ]
    for line in (line_in_step(recording, metric), *updates(recording, metric)):
        found += line[:1]
    return (found[0], *compiled_at) if found else with_keyword(compiled_at, "metrics")


def is_named(metric: Definition, name: str) -> bool:
    """Tells whether a metric is reported by this name, before which Keras may put that of an output."""
    return name == metric.name or name.endswith(f"_{metric.name}")


def returns_of(defined: Frame) -> list[Frame]:
    """Returns the lines on which a function of the program returns; one without a name is on its line."""
    function = function_defined(defined)
    lines = [each.lineno for each in returns_in(function)] if function else [defined.line]
    return [defined._replace(line=line) for line in lines]
