"""The examiner's rule for fm68: a loss that the program's own step reports, divided or multiplied by the number of replicas."""

from dataclasses import replace

import pytest
from recorded import (
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
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import (
    ExamplesTaken,
    Metric,
    MetricsReported,
    Outcome,
    Owner,
    StepEnded,
    Use,
)

STEPS = "train_step", "test_step"

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
    at, own = stack(path, 10), steps_in(path)

    def reported(value):
        return MetricsReported(at, (Metric(name, value),), at)

    return (
        run(strategy(1), own, reported(of_one), devices=1),
        run(strategy(many), own, reported(of_many), devices=many, **fields),
    )


def steps_in(path):
    """Returns the event of a model that has the functions of a file instead of Keras's steps."""
    lines = enumerate(path.read_text().splitlines(), 1)
    names = [(number, line.split("(")[0].split()[1]) for number, line in lines if " def " in line]
    steps = [defined(Use.STEP, path, *each) for each in names if each[1] in STEPS]
    return compiled(stack(path, 9), *steps)


@pytest.mark.parametrize(
    "name, many, value, line",
    [
        ("loss", 2, 2.0, 3),
        ("loss", 4, 1.0, 3),
        ("val_loss", 2, 2.0, 7),
        ("d_loss", 2, 2.0, 3),
        ("loss", 2, 8.0, 3),
        ("val_d_loss", 4, 16.0, 7),
    ],
)
def test_a_part_of_the_loss(tmp_path, name, many, value, line):
    (finding,) = found(*runs(tmp_path, name, 4.0, value, many=many))
    assert (finding.mode, finding.line) == ("fm68", line)
    assert f"{name} is 4 on 1 and {value:g} on {many} devices" in str(finding.message)
    assert ("multiplied" in str(finding.message)) == ("share" in finding.fix) == (value > 4.0)


@pytest.mark.parametrize("value", [4.0, 2.1, 0.0, 7.9, 16.0])
def test_other_losses(tmp_path, value):
    assert modes(*runs(tmp_path, "loss", 4.0, value)) == []


RETURNED = PROGRAM.replace(
    '{"loss": self.tracker.result()}', '{"loss": loss, "error": self.error.result()}'
)


def test_a_loss_in_a_dict_with_other_losses(tmp_path):
    one, other = runs(tmp_path, "loss", 4.0, 8.0, text=RETURNED)
    at = stack(tmp_path / "train.py", 10)
    second = (Metric("error_loss", 1.0), Metric("error_loss", 2.0))
    (finding,) = found(
        *(
            replace(each, events=(*each.events, MetricsReported(at, (more,), at)))
            for each, more in zip((one, other), second)
        )
    )
    assert (finding.line, "loss is 4 on" in str(finding.message)) == (4, True)


def test_a_program_without_a_step_of_its_own(tmp_path):
    assert modes(*runs(tmp_path, "loss", 4.0, 2.0, text="model.fit(data)\n" * 10)) == []


@pytest.mark.parametrize("step, expected", [("train_step", ["fm68"]), ("update_state", ["fm44"])])
def test_another_metric_that_a_step_updates_with_a_part(tmp_path, step, expected):
    path = tmp_path / "train.py"
    update = written(location=stack(path, 3, function=step), writer=Owner.METRIC)
    change = StepEnded(1, values({1: [0.5]}), (), (), ())
    pair = runs(tmp_path, "error", 4.0, 2.0)
    kept = variable(1, name="error/total"), update, change
    found_in = found(*(replace(each, events=(*each.events, *kept)) for each in pair))
    assert [each.mode for each in found_in] == expected


def test_a_run_that_did_not_end(tmp_path):
    assert modes(*runs(tmp_path, "loss", 4.0, 2.0, outcome=Outcome.RAISED)) == []


def test_a_loss_of_zero_says_nothing(tmp_path):
    assert modes(*runs(tmp_path, "loss", 0.0, 0.0)) == []


# A loss that Keras has for itself

CHANGED = StepEnded(1, values({1: [0.5]}), (), (), ())


def reports(tmp_path, losses, name="loss", text=RETURNED, step=CHANGED, **fields):
    path = tmp_path / "train.py"
    path.write_text(text)
    at = stack(path, 10)
    reported = [MetricsReported(at, (Metric(name, value),), at) for value in losses]
    return run(steps_in(path), *([step] if step else []), *reported, **fields)


@pytest.mark.parametrize("name, line", [("loss", 4), ("val_loss", 7)])
def test_a_loss_that_is_zero_in_all_epochs(tmp_path, name, line):
    (finding,) = found(reports(tmp_path, [0.0, 0.0], name))
    assert (finding.mode, finding.line) == ("fm68", line) and "Mean" in finding.fix
    assert str(finding.proof).endswith(f"{name} is 0.0 in all 2 reports")


@pytest.mark.parametrize(
    "change",
    [
        {"losses": [0.0, 0.1]},
        {"step": None},
        {"text": PROGRAM},
        {"text": RETURNED.replace('"loss":', '"error":')},
        {"text": RETURNED.replace("train_step", "step")},
        {"outcome": Outcome.RAISED},
        {"name": "error"},
    ],
    ids=[
        "a number",
        "nothing trained",
        "tracked",
        "another name",
        "no step",
        "raised",
        "another metric",
    ],
)
def test_a_loss_that_may_be_zero(tmp_path, change):
    assert modes(reports(tmp_path, **{"losses": [0.0, 0.0], **change})) == []


TOTAL = RETURNED.replace('"loss":', '"total":')


TOTAL_OF_METRIC = variable(5, name="total/total", maker=Owner.METRIC)


def reports_of_total(tmp_path, *writing, made=(TOTAL_OF_METRIC,)):
    """Returns a run in which `fit` reports 0.0, and `evaluate` what its step has updated."""
    recording = reports(tmp_path, [0.0, 0.0], "total", TOTAL)
    path = tmp_path / "train.py"
    updates = [
        written(number=5, writer=Owner.USER, replicas=2, location=stack(path, line, function=step))
        for line, step in writing
    ]
    at = stack(path, 11)
    evaluated = MetricsReported(at, (Metric("total", 1.4),), at)
    return run(*made, *updates, *recording.events, evaluated)


def test_another_number_for_which_the_model_has_a_metric(tmp_path):
    for writing in ((), ((6, "test_step"),)):
        (finding,) = found(reports_of_total(tmp_path, *writing))
        assert (finding.mode, finding.line) == ("fm68", 4)
        assert "`fit` reports not the total that `train_step` returns" in str(finding.message)


def test_another_number_that_may_be_zero(tmp_path):
    assert modes(reports_of_total(tmp_path, (4, "train_step"))) == []
    assert modes(reports_of_total(tmp_path, made=())) == []


# A number of the last batch


def notes(recording):
    return [str(each) for each in diagnose(Runs([recording])).notes]


def in_step(writer, function="train_step"):
    at = (*stack(__file__, 3, function="loss_of"), *stack(__file__, 4, function=function))
    return written(location=at, number=5, writer=writer, replicas=0)


@pytest.mark.parametrize(
    "change",
    [{}, {"step": in_step(Owner.OPTIMIZER)}, {"step": in_step(Owner.METRIC, "<module>")}],
    ids=["nothing", "a weight", "a metric outside"],
)
def test_a_step_that_updates_no_metric(tmp_path, change):
    recording = reports(tmp_path, [4.0, 2.0], **change)
    (note,) = notes(with_batches(recording, 8))
    assert "line 4 returns no result of a metric: `fit` reports the loss of the last" in note
    assert modes(with_batches(recording, 8)) == []


def with_batches(recording, batches, in_fit=True):
    taken = ExamplesTaken(stack(__file__, 1), in_fit, 0, batches, ())
    return replace(recording, events=(*recording.events, taken))


@pytest.mark.parametrize(
    "change, batches",
    [
        ({}, 1),
        ({"text": PROGRAM}, 8),
        ({"losses": [0.0]}, 8),
        ({"step": in_step(Owner.METRIC)}, 8),
        ({"step": in_step(Owner.USER)}, 8),
        ({"outcome": Outcome.RAISED}, 8),
    ],
    ids=["one batch", "a result", "zero", "a metric", "a mean of its own", "raised"],
)
def test_a_step_that_reports_a_mean_or_one_batch(tmp_path, change, batches):
    recording = with_batches(reports(tmp_path, **{"losses": [4.0, 2.0], **change}), batches)
    assert not any("last batch" in each for each in notes(recording))


def test_a_loop_beside_fit_has_no_epochs(tmp_path):
    assert notes(with_batches(reports(tmp_path, [4.0, 2.0]), 8, in_fit=False)) == []


# A metric of the loss that gets targets

GUIDE = """\
class Own(Model):
    def train_step(self, data):
        x, y = data
        loss = self.compute_loss(x, y, self(x))
        for metric in self.metrics:
            metric.update_state(y, self(x))
        return {metric.name: metric.result() for metric in self.metrics}
"""
UPDATE = "metric.update_state(y, self(x))"


def updates_its_metrics(tmp_path, change, writer=Owner.METRIC, name="loss/total"):
    path = tmp_path / "model.py"
    path.write_text(GUIDE.replace(*change))
    at = stack(path, 6, function="train_step")
    return run(
        variable(1, name=name, maker=Owner.METRIC), written(location=at, number=1, writer=writer)
    )


@pytest.mark.parametrize(
    "change",
    [
        ("", ""),
        ("x, y = data", "(x, y), w = data, 1.0"),
        ("x, y = data", "x, y, w = unpack_x_y_sample_weight(data)"),
        ("x, y = data", "x, y = kept = data; y: tf.Tensor = kept[1]"),
        ("metric.update", "self.compiled_metrics.update"),
    ],
    ids=["guide", "a tuple", "unpacked", "with its type", "compiled_metrics"],
)
def test_targets_in_the_metric_of_the_loss(tmp_path, change):
    (finding,) = found(updates_its_metrics(tmp_path, change))
    assert (finding.mode, finding.line) == ("fm68", 6) and "one by one" in finding.fix


@pytest.mark.parametrize(
    "change, fields",
    [
        ((UPDATE, "metric.update_state(loss, y)"), {}),
        ((UPDATE, "metric.update_state(loss) if metric.name == 'loss' else " + UPDATE), {}),
        ((UPDATE, "metric.update_state(*values[metric.name])"), {}),
        (("x, y = data", "x, y = self.losses_of(data)"), {}),
        (("", ""), {"name": "mae/total"}),
        (("", ""), {"writer": Owner.USER}),
    ],
    ids=["the loss", "one by one", "unknown", "computed", "another metric", "no metric"],
)
def test_a_metric_of_the_loss_that_may_be_right(tmp_path, change, fields):
    assert modes(updates_its_metrics(tmp_path, change, **fields)) == []
