"""The examiner's rule for a metric that is reported otherwise on other numbers of devices, on facts alone."""

import pytest
from examine_facts import LINE, OTHER, fact, modes, run, strategy
from strategy_clinic.examiner.rules.reports import from_metrics


def reported(**values):
    told = {"loss": 1.0, "error": 2.0} | values
    return fact("reported", values=told, compiled=LINE) | {"at": OTHER}


def on_two(of_one, of_two, **options):
    return modes(run(strategy(1), of_one, devices=1), run(strategy(2), of_two, **options))


@pytest.mark.parametrize("value", [4.0, float("nan"), 1.9])
def test_a_metric_that_parts_while_the_loss_agrees(value):
    assert on_two(reported(), reported(error=value)) == [("fm44", 7)]


@pytest.mark.parametrize(
    "other",
    [
        reported(),
        reported(error=2.001),
        reported(error=4.0, loss=1.1),
        reported(error=4.0) | {"compiled": []},
        reported(error=4.0) | {"at": LINE},
        reported(val_loss=3.0),
    ],
    ids=["the same", "rounded", "another loss", "no place", "another call", "another name"],
)
def test_a_metric_that_does_not_part(other):
    assert on_two(reported(), other) == []


def test_losses_are_no_metrics():
    assert on_two(reported(val_loss=2.0), reported(val_loss=3.0)) == []


def test_runs_that_did_not_end_are_not_compared():
    assert on_two(reported(), reported(error=4.0), ended="raised") == []
    assert modes(run(strategy(2), reported()), run(strategy(2), reported(error=4.0))) == []


PROGRAM = """\
def make(rate, metrics):
    model = Model(rate)
    model.compile(Adam(rate), "mse", metrics=metrics)
    return model
def main():
    model = make(0.1, [rmse])
def other(rate):
    model = Model()
    model.compile(Adam(rate), "mse", metrics=[rmse])
def calling():
    other(0.1)
"""


def test_the_line_is_the_one_that_names_the_metrics(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    passed = [[str(path), 3, "make"], [str(path), 6, "main"]]
    assert from_metrics(passed)[0][1] == 6
    written = [[str(path), 9, "other"], [str(path), 11, "calling"]]
    assert from_metrics(written)[0][1] == 9
