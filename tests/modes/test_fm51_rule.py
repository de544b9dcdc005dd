"""The examiner's rule for fm51: an overflow that the first replica does not have."""

from dataclasses import replace

import pytest
from recorded import LINE, OTHER, settled, trained, updated
from strategy_clinic.examiner.findings import DIVERGES
from strategy_clinic.observer.events import Ended, Part, PartUsed
from strategy_clinic.observer.replacements import Replacement

SHARED = (Replacement.SHARED_OVERFLOW,)
NUDGED = (Replacement.NUDGED_WEIGHTS,)
INFINITE = float("inf")


def scaled(value, devices, *events, location=OTHER, kind="LossScaleOptimizer"):
    return trained(value, updated(kind=kind, location=location), *events, devices=devices)


def reported(one, other, answers, nudged=None):
    nudged = nudged or (0.9, other.of(Ended)[0].values[0].sample.entries[0])
    diagnosis, asked = settled(one, other, {SHARED: answers, NUDGED: nudged})
    return [(each.mode, each.line) for each in diagnosis.findings], asked


@pytest.mark.parametrize("value", [INFINITE, -INFINITE, float("nan")])
def test_runs_that_agree_if_all_replicas_are_asked(value):
    runs = scaled(0.9, 1), scaled(value, 2)
    assert reported(*runs, (0.9, 0.9))[0] == [("fm51", 20)]


def test_the_line_that_asks_for_half_precision():
    half = PartUsed(LINE, Part.HALF_PRECISION)
    runs = scaled(0.9, 1), scaled(INFINITE, 2, half)
    assert reported(*runs, (0.9, 0.9))[0] == [("fm51", 7)]


def test_the_line_that_makes_the_optimizer():
    one, other = (trained(value, devices=devices) for value, devices in ((0.9, 1), (INFINITE, 2)))
    state = replace(updated(kind="LossScaleOptimizer"), made_at=LINE)
    first = (state, *(each for each in other.events if each != updated()))
    assert reported(one, replace(other, events=first), (0.9, 0.9))[0] == [("fm51", 7)]


def test_it_is_no_fault_of_the_program():
    answers = {SHARED: (0.9, 0.9), NUDGED: (0.9, INFINITE)}
    (finding,) = settled(scaled(0.9, 1), scaled(INFINITE, 2), answers)[0].findings
    assert finding.by_framework and str(finding.message).endswith("your program is right")


# Near misses


def test_numbers_that_are_finite():
    findings, asked = reported(scaled(0.9, 1), scaled(0.8, 2), (0.9, 0.9), (0.9, 0.8))
    assert findings == [(DIVERGES, 20)] and (frozenset(SHARED), 0) not in asked


def test_an_optimizer_without_a_loss_scale():
    runs = scaled(0.9, 1, kind="SGD"), scaled(INFINITE, 2, kind="SGD")
    findings, asked = reported(*runs, (0.9, 0.9))
    assert findings == [(DIVERGES, 20)] and (frozenset(SHARED), 0) not in asked


@pytest.mark.parametrize("answers", [(0.9, 0.8), (0.9, INFINITE)], ids=["other", "infinite"])
def test_runs_that_differ_if_all_replicas_are_asked(answers):
    runs = scaled(0.9, 1), scaled(INFINITE, 2)
    assert reported(*runs, answers)[0] == [(DIVERGES, 20)]


def test_runs_that_agree_are_not_run_again():
    assert reported(scaled(0.9, 1), scaled(0.9, 2), (0.9, 0.9)) == ([], [])
