"""The examiner's rule for fm68: a loss that the program's own step reports, divided by the number of replicas."""

import pytest
from recorded import found, modes, run, stack, strategy
from strategy_clinic.observer.events import Metric, MetricsReported, Outcome

PROGRAM = """\
class Own(Model):
    def train_step(self, data):
        self.tracker.update_state(self.compute_loss(data))
        return {"loss": self.tracker.result()}

    def test_step(self, data):
        return {"loss": self.tracker.result()}


model.fit(data)
"""


def runs(tmp_path, name, of_one, of_many, text=PROGRAM, many=2, **fields):
    path = tmp_path / "train.py"
    path.write_text(text)
    at = stack(path, 10)

    def reported(value):
        return MetricsReported(at, (Metric(name, value),), at)

    return (
        run(strategy(1), reported(of_one), devices=1),
        run(strategy(many), reported(of_many), devices=many, **fields),
    )


@pytest.mark.parametrize(
    "name, many, value, line", [("loss", 2, 2.0, 3), ("loss", 4, 1.0, 3), ("val_loss", 2, 2.0, 7)]
)
def test_a_part_of_the_loss(tmp_path, name, many, value, line):
    (finding,) = found(*runs(tmp_path, name, 4.0, value, many=many))
    assert (finding.mode, finding.line) == ("fm68", line)
    assert f"4 on 1 and {value:g} on {many} devices" in str(finding.message)


@pytest.mark.parametrize("value", [4.0, 2.1, 0.0, 8.0])
def test_other_losses(tmp_path, value):
    assert modes(*runs(tmp_path, "loss", 4.0, value)) == []


def test_a_program_without_a_step_of_its_own(tmp_path):
    assert modes(*runs(tmp_path, "loss", 4.0, 2.0, text="model.fit(data)\n" * 10)) == []


def test_a_run_that_did_not_end(tmp_path):
    assert modes(*runs(tmp_path, "loss", 4.0, 2.0, outcome=Outcome.RAISED)) == []


def test_a_loss_of_zero_says_nothing(tmp_path):
    assert modes(*runs(tmp_path, "loss", 0.0, 0.0)) == []
