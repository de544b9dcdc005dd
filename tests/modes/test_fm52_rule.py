"""The examiner's rule for fm52: a part without examples, beside BatchNormalization."""

from dataclasses import replace

import pytest
from recorded import LINE, OTHER, answering, trained
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.findings import Replace
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import (
    DatasetBatched,
    GradientComputed,
    Outcome,
    Part,
    PartUsed,
)
from strategy_clinic.observer.replacements import Replacement

NAN = float("nan")
STATISTICS = PartUsed(OTHER, Part.BATCH_STATISTICS)
BATCHED = DatasetBatched(LINE, 16)


def run_with(value, *events, devices=2, **fields):
    return trained(value, STATISTICS, *events, devices=devices, **fields)


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


# Near misses


def test_numbers_that_are_finite():
    assert judged(run_with(0.9, BATCHED), ONE) == ([], [])


def test_no_numbers_on_one_device_either():
    assert judged(run_with(NAN, BATCHED), run_with(NAN, BATCHED, devices=1)) == ([], [])


def test_no_numbers_in_full_batches_either():
    assert judged(run_with(NAN, BATCHED), ONE, full=NAN)[0] == []


def test_a_run_that_raised():
    assert judged(run_with(NAN, BATCHED, outcome=Outcome.RAISED), ONE) == ([], [])
