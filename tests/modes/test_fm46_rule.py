"""The examiner's rule for fm46: a learning rate that a restore has brought back."""

import pytest
from recorded import LINE, OTHER, modes, run, saved, stack, state, updated
from strategy_clinic.observer.events import LearningRateRestored

OLD, NEW = "0.25", "0.05"
FIRST = updated(steps=0, learning_rate=OLD, variables=(4, 5))
KEPT = saved(optimizers=(state(steps=3, learning_rate=OLD, variables=(4, 5)),))


def replaced(location=LINE):
    return LearningRateRestored(location, before=0.05, after=0.25, variables=(7, 8))


def next_step(rate):
    return updated(steps=3, learning_rate=rate, variables=(7, 8, 9))


def test_an_optimizer_that_trains_on_at_the_rate_of_a_file():
    assert modes(run(FIRST, KEPT, replaced(), next_step(OLD))) == [("fm46", 7)]


@pytest.mark.parametrize(
    "events",
    [
        [FIRST, KEPT, replaced(), next_step(NEW)],
        [FIRST, KEPT, replaced()],
        [replaced(), next_step(OLD)],
        [FIRST, KEPT, replaced(()), next_step(OLD)],
        [updated(steps=0, learning_rate="1.0", variables=(4, 5)), KEPT, replaced(), next_step(OLD)],
        [FIRST, KEPT, replaced(), next_step("{'class_name': 'ExponentialDecay'}")],
    ],
    ids=["set again", "no step", "from elsewhere", "no line", "lowered in training", "schedule"],
)
def test_a_rate_that_is_meant(events):
    assert modes(run(*events)) == []


def test_the_line_is_where_both_are_decided():
    inner = (*stack("/program/train.py", 3, function="load"), *OTHER)
    assert modes(run(FIRST, KEPT, replaced(inner), next_step(OLD))) == [("fm46", 20)]
