"""The examiner's rules for fm52: a part without examples, beside BatchNormalization and in operations of oneDNN."""

import textwrap
from dataclasses import replace

import pytest
from recorded import LINE, OTHER, answering, modes, run, stack, trained
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.findings import Replace
from strategy_clinic.examiner.recording import ProcessStacks, Role, ThreadStack
from strategy_clinic.examiner.report.text import exit_status
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.examiner.runs import plan
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.modes.fm52_empty_part import rule
from strategy_clinic.observer.events import (
    BatchTaken,
    DatasetBatched,
    ExceptionRaised,
    GradientComputed,
    Metric,
    MetricsReported,
    Outcome,
    Part,
    PartUsed,
    StepEnded,
)
from strategy_clinic.observer.replacements import Replacement

NAN = float("nan")
STATISTICS = PartUsed(OTHER, Part.BATCH_STATISTICS)
BATCHED = DatasetBatched(LINE, 16)


TAKEN = BatchTaken(LINE, (8, 7))


def run_with(value, *events, devices=2, **fields):
    return trained(value, STATISTICS, TAKEN, *events, devices=devices, **fields)


def judged(*recordings, full=0.7):
    again = answering(Replace=replace(trained(full), role=Role.CHANGED))
    findings = diagnose(Runs(recordings), again).findings
    return [(each.mode, each.line) for each in findings], again.asked


ONE = run_with(0.9, BATCHED, devices=1)


@pytest.mark.parametrize("value", [NAN, float("inf")])
def test_weights_that_are_numbers_in_full_batches(value):
    findings, asked = judged(run_with(value, BATCHED), ONE)
    assert findings == [("fm52", 7)]
    assert asked == [Replace(frozenset({Replacement.FULL_BATCHES}))]


def test_the_line_that_computes_gradients_where_none_makes_batches():
    computed = GradientComputed(OTHER, 0, 1)
    findings, _ = judged(run_with(NAN, computed), run_with(0.9, devices=1))
    assert findings == [("fm52", 20)]


def test_it_is_no_fault_of_the_program():
    again = answering(Replace=replace(trained(0.7), role=Role.CHANGED))
    (finding,) = diagnose(Runs([run_with(NAN, BATCHED), ONE]), again).findings
    assert finding.devices == (1, 2)
    assert finding.by_framework and str(finding.message).endswith("your program is right")


def test_a_program_that_divides_by_the_examples_of_a_part():
    again = answering(Replace=replace(trained(0.7), role=Role.CHANGED))
    (finding,) = diagnose(Runs([trained(NAN, BATCHED), ONE]), again).findings
    assert (finding.mode, finding.line, finding.by_framework) == ("fm52", 7, False)
    assert "the program divides" in str(finding.message)


def reporting(value, *events, devices=2):
    reported = MetricsReported(LINE, (Metric("loss", value),), ())
    return trained(0.9, TAKEN, *events, reported, devices=devices)


@pytest.mark.parametrize(
    "one, other, full, expected",
    [
        (0.5, NAN, 0.4, [("fm52", 7)]),
        (NAN, NAN, 0.4, []),
        (0.5, 0.6, 0.4, []),
        (0.5, NAN, NAN, []),
    ],
    ids=["only on 2 devices", "on 1 device, too", "numbers", "in full batches, too"],
)
def test_what_fit_reports_of_a_part_without_examples(one, other, full, expected):
    again = answering(Replace=replace(reporting(full), role=Role.CHANGED))
    runs = Runs([reporting(other, BATCHED), reporting(one, BATCHED, devices=1)])
    findings = diagnose(runs, again).findings
    assert [(each.mode, each.line) for each in findings] == expected
    assert all("divide_no_nan" in each.fix for each in findings)


def test_predictions_have_a_fix_of_their_own(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("net.predict(x)\nnet.fit(x)\n")
    for line, words in ((1, "call the model"), (2, "")):
        assert words in rule.of_predictions.fix(run(), stack(path, line))
    assert rule.of_predictions.fix(run(), stack(path, 2)) == ""


# Near misses
# Near misses


def test_numbers_that_are_finite():
    assert judged(run_with(0.9, BATCHED), ONE) == ([], [])


def test_no_numbers_on_one_device_either():
    assert judged(run_with(NAN, BATCHED), run_with(NAN, BATCHED, devices=1)) == ([], [])


def test_no_numbers_in_full_batches_either():
    assert judged(run_with(NAN, BATCHED), ONE, full=NAN)[0] == []


def test_a_run_that_raised():
    assert judged(run_with(NAN, BATCHED, outcome=Outcome.RAISED), ONE) == ([], [])


# With oneDNN

AT_A_LINE = ProcessStacks(1, "", (ThreadStack(OTHER, OTHER),), True, fatal="Aborted")
ABORTED = trained(0.7, outcome=Outcome.KILLED, status=-6, stacks=(AT_A_LINE,))
RAISED = trained(
    0.7,
    ExceptionRaised(OTHER, "InvalidArgumentError", "InvalidArgumentError: [0,8,8,1]", ()),
    outcome=Outcome.RAISED,
    status=1,
)


def without_onednn(failed, *events, full=None):
    """What is found where a run fails with oneDNN alone, and what was asked; `full` is the run without a smaller batch."""
    again = answering(Replace=full or replace(trained(0.7), role=Role.CHANGED))
    run = trained(0.7, TAKEN, *events, with_onednn=failed)
    found = diagnose(Runs([run, trained(0.7, devices=1)]), again).findings
    return found, again.asked


@pytest.mark.parametrize(
    "failed, error, does",
    [(ABORTED, "SIGABRT", "aborts"), (RAISED, "InvalidArgumentError", "returns a wrong shape")],
)
def test_a_run_that_fails_with_onednn_in_a_smaller_batch_alone(failed, error, does):
    (finding,), asked = without_onednn(failed, BATCHED)
    assert (finding.mode, finding.line, finding.by_framework) == ("fm52", 7, True)
    assert f"{does} for an empty part; your program is right" in str(finding.message)
    assert str(finding.proof).startswith(f"raised {error} on 2 devices with oneDNN; finishes")
    assert asked == [Replace(frozenset({Replacement.FULL_BATCHES}), onednn=True)]


@pytest.mark.parametrize("failed", [ABORTED, RAISED])
def test_the_line_at_which_it_failed_where_none_makes_batches(failed):
    (finding,), _ = without_onednn(failed)
    assert (finding.mode, finding.line) == ("fm52", 20)


def test_a_run_that_fails_with_onednn_in_full_batches_too():
    assert without_onednn(ABORTED, BATCHED, full=replace(ABORTED, role=Role.CHANGED))[0] == []


POOLING = """
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        layers = [tf.keras.layers.Conv2D(4, 3, padding="same"), tf.keras.layers.MaxPooling2D()]
        layers += [tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)]
        model = tf.keras.Sequential([tf.keras.Input((8, 8, 1)), *layers])
        model.compile("sgd", loss="mse")
    model.fit(tf.ones((9, 8, 8, 1)), tf.ones((9, 1)), batch_size=8, verbose=0)
"""


@pytest.mark.replayed
def test_a_program_that_onednn_aborts(tmp_path, monkeypatch):
    monkeypatch.delenv(plan.ONEDNN, raising=False)
    (tmp_path / "train.py").write_text(textwrap.dedent(POOLING))
    examination = plan.examine(ProgramSpec(("train.py",), tmp_path, limit=120))
    if not any(each.outcome is Outcome.KILLED for each in examination.runs):
        pytest.skip("this TensorFlow has no such operation, or has it repaired")
    (finding,) = examination.findings
    assert (finding.mode, finding.line, exit_status(examination)) == ("fm52", 10, 1)
    assert examination.failure == "" and plan.WITHOUT_ONEDNN in examination.notes


FIRST, ENDED = BatchTaken(OTHER, (8, 8)), StepEnded(1, (), (), (), ())


@pytest.mark.parametrize(
    "events, expected",
    [
        ([FIRST, ENDED, BatchTaken(OTHER, (1, 0))], [("fm52", 7)]),
        ([FIRST, ENDED, BatchTaken(OTHER, (1, 1))], []),
        ([BatchTaken(OTHER, (1, 0))], []),
        ([BatchTaken(OTHER, (1, 0)), ENDED, FIRST], []),
    ],
    ids=["an empty part", "a smaller batch", "the first step", "an earlier batch"],
)
def test_an_exception_in_the_step_of_a_batch(events, expected):
    raised = ExceptionRaised(LINE, "InvalidArgumentError", "InvalidArgumentError: got 8 and 1", ())
    assert modes(run(*events, raised, outcome=Outcome.RAISED)) == expected
