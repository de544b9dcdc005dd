"""The examiner's rule for fm44: a metric that is reported otherwise on other numbers of devices."""

from dataclasses import replace
from importlib import import_module

import pytest
from recorded import (
    LINE,
    OTHER,
    compiled,
    defined,
    found,
    modes,
    run,
    stack,
    strategy,
    values,
    variable,
    written,
)
from strategy_clinic.examiner.divergence import Divergence
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import Metric, MetricsReported, Outcome, StepEnded, Use

rule = import_module("strategy_clinic.modes.fm44_fit_reports_another_number.rule")


def reported(**changes):
    metrics = {"loss": 1.0, "error": 2.0} | changes
    return MetricsReported(OTHER, tuple(Metric(*each) for each in metrics.items()), LINE)


def on_two(of_one, of_two, **fields):
    return run(strategy(1), of_one, devices=1), run(strategy(2), of_two, **fields)


@pytest.mark.parametrize("value", [4.0, float("nan"), 1.9])
def test_a_metric_that_differs_while_the_loss_agrees(value):
    (finding,) = found(*on_two(reported(), reported(error=value)))
    assert (finding.mode, finding.line, finding.devices) == ("fm44", 7, (1, 2))
    assert str(finding.proof) == "compared 1 and 2 devices"


@pytest.mark.parametrize(
    "other",
    [
        reported(),
        reported(error=2.001),
        reported(error=4.0, loss=1.1),
        replace(reported(error=4.0), compiled_at=()),
        replace(reported(error=4.0), location=LINE),
        reported(val_loss=3.0),
    ],
    ids=["the same", "rounded", "another loss", "no place", "another call", "another name"],
)
def test_a_metric_that_does_not_differ(other):
    assert modes(*on_two(reported(), other)) == []


def test_a_program_that_is_started_again_reports_its_last_epochs_only():
    restarted = run(strategy(2), role=Role.RESTARTED)
    assert modes(*on_two(reported(), reported(error=4.0)), restarted) == [("fm44", 7)]


@pytest.mark.parametrize("apart, expected", [(0.0, [("fm44", 7)]), (0.01, [])])
def test_a_loss_by_another_name(apart, expected):
    """A model with a `train_step` of its own names its loss itself."""

    def of(value, loss):
        metrics = Metric("error", value), Metric("own_loss", 1.0), Metric("val_own_loss", loss)
        return MetricsReported(OTHER, metrics, LINE)

    assert modes(*on_two(of(2.0, 1.0), of(4.0, 1.0 + apart))) == expected


@pytest.mark.parametrize(
    "name, value, loss, expected",
    [
        ("error", 2.002, 1.0, [("fm44", 2)]),
        ("other", 2.002, 1.0, []),
        ("error", 2.0001, 1.0, []),
        ("error", 2.001, 1.00009, []),
    ],
    ids=["a function of the program", "another metric", "rounded", "as the loss"],
)
def test_a_small_difference_of_what_the_program_computes(tmp_path, name, value, loss, expected):
    path = tmp_path / "train.py"
    path.write_text("def error(y, p):\n    return mean(y - p)\n")
    own = compiled(LINE, defined(Use.METRIC, path, 1, "error"))
    one, other = on_two(reported(**{name: 2.0}), reported(**{name: value}, loss=loss))
    runs = [replace(each, events=(own, *each.events)) for each in (one, other)]
    assert modes(*runs) == expected


def test_a_metric_that_differs_in_a_later_epoch():
    """In the first the model may have learned nothing yet."""

    def epochs(*values):
        return [reported(error=value) for value in values]

    one, two = epochs(0.0, 2.0), epochs(0.0, 4.0)
    assert modes(run(strategy(1), *one, devices=1), run(strategy(2), *two)) == [("fm44", 7)]
    assert modes(run(strategy(1), *one, devices=1), run(strategy(2), *one)) == []


def test_a_metric_without_a_loss_says_something_if_the_same_weights_are_trained():
    """As of a model whose own step calls its loss otherwise."""
    one, other = (MetricsReported(OTHER, (Metric("error", value),), LINE) for value in (2.0, 4.0))
    assert modes(*on_two(one, other)) == []
    step = StepEnded(1, (), (), (), ())
    pair = run(strategy(1), step, one, devices=1), run(strategy(2), step, other)
    (finding,) = found(*pair)
    assert finding.mode == "fm44" and str(finding.message).endswith("with the same weights")
    apart = Runs(pair, [Divergence(*pair, 1, "weight", 0.5)])
    assert "fm44" not in [each.mode for each in diagnose(apart).findings]


@pytest.mark.parametrize("value, expected", [(4.0, True), (1.0, True), (3.0, False)])
def test_where_the_trainings_differ_only_a_factor_shows_that_it_is_the_metric(value, expected):
    pair = on_two(reported(), reported(error=value))
    apart = Runs(pair, [Divergence(*pair, 1, "weight", 0.5)])
    assert ("fm44" in [each.mode for each in diagnose(apart).findings]) == expected


@pytest.mark.parametrize("weight, expected", [(0.5, [("fm44", 7)]), (0.6, [])])
def test_weights_that_differ_from_run_to_run_explain_a_metric(weight, expected):
    """Of a program that does not repeat itself no divergence is kept."""

    def after_a_step(recording, value):
        step = StepEnded(1, values({1: [value]}), values({1: [1.0]}), (), ())
        return replace(recording, events=(variable(1), step, *recording.events))

    one, other = on_two(reported(), reported(error=4.0))
    assert modes(after_a_step(one, 0.5), after_a_step(other, weight)) == expected


def test_a_metric_that_only_one_run_has():
    assert modes(*on_two(reported(only=1.0), reported())) == []
    assert modes(*on_two(reported(), reported(only=1.0))) == []


def test_losses_are_no_metrics():
    assert modes(*on_two(reported(val_loss=2.0), reported(val_loss=3.0))) == []


def test_runs_that_did_not_end_are_not_compared():
    assert modes(*on_two(reported(), reported(error=4.0), outcome=Outcome.RAISED)) == []


def test_runs_on_the_same_devices_are_not_compared():
    assert modes(run(strategy(2), reported()), run(strategy(2), reported(error=4.0))) == []


PROGRAM = """\
def f1(labels, outputs):
    return mean(labels, outputs)
class Recall(Metric):
    def update_state(self, labels, outputs):
        return None
    @property
    def result(self):
        return self.hits / self.named
class Tagger(Model):
    def __init__(self):
        self.f2 = Mean(name="f2")
    def test_step(self, batch):
        self.f2.update_state(batch)
        logs = {"depth": depth(batch)}
        logs["f1 of words"] = of_words(batch)
        return logs
other = Mean(name="other")
model.compile(
    Adam(),
    metrics=[f1, Recall()],
)
"""


@pytest.mark.parametrize(
    "metric, line",
    [
        ("f1", 2),
        ("val_f1", 2),
        ("tags_f1", 2),
        ("recall", 5),
        ("val_f2", 13),
        ("depth", 14),
        ("val_f1 of words", 15),
        ("other", 20),
        ("none", 20),
    ],
)
def test_the_line_is_the_one_that_computes_the_metric(tmp_path, metric, line):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    own = (
        defined(Use.METRIC, path, 1, "f1"),
        defined(Use.METRIC, path, 6, "result", "recall"),
        defined(Use.STEP, path, 12, "test_step"),
    )
    at, fit = stack(path, 18), stack(path, 17)
    elsewhere = compiled(stack(path, 3), defined(Use.METRIC, path, 4, "update_state", "none"))
    kept = [
        variable(1, name="recall/hits"),
        variable(2, name="f2/total"),
        variable(3, name="other/total"),
    ]
    lines = [(1, (*stack(path, 5), *fit)), (2, (*stack(path, 13), *fit)), (3, fit)]
    told = [written(number=number, location=line) for number, line in lines]
    reports = MetricsReported(fit, (Metric("recall", 1.0),), at)
    seen = run(compiled(at, *own), elsewhere, *kept, *told, reports)
    assert rule.from_metrics(seen, at, metric)[0].line == line


def test_the_line_of_a_validation_is_where_the_step_of_a_test_updates(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    told = [
        written(location=stack(path, line, function=step))
        for line, step in ((5, "train_step"), (13, "test_step"))
    ]
    seen = run(variable(1, name="f2/total"), *told)
    at = stack(path, 18)
    assert [rule.from_metrics(seen, at, name)[0].line for name in ("f2", "val_f2")] == [5, 13]


def test_a_metric_that_is_a_lambda_is_on_its_line(tmp_path):
    at = stack(tmp_path / "train.py", 3)
    own = compiled(at, defined(Use.METRIC, tmp_path / "metrics.py", 5, "<lambda>"))
    (line, *_) = rule.from_metrics(run(own), at, "<lambda>")
    assert (line.path, line.line) == (str(tmp_path / "metrics.py"), 5)
