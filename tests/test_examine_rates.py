"""The examiner's rule for a learning rate that a restore has brought back, on facts alone."""

import pytest
from examine_facts import OTHER, fact, modes, run, saved, state, updated

OLD, NEW = "0.25", "0.05"
FIRST = updated(state=state(steps=0, at=OLD, variables=[4, 5]))
KEPT = saved(optimizers=[state(steps=3, at=OLD, variables=[4, 5])])


def replaced(**changes):
    return fact("rate", before=0.05, after=0.25, variables=[7, 8]) | changes


def next_step(at):
    return updated(state=state(steps=3, at=at, variables=[7, 8, 9]))


def test_an_optimizer_that_trains_on_at_the_rate_of_a_file():
    assert modes(run(FIRST, KEPT, replaced(), next_step(OLD))) == [("fm46", 7)]


@pytest.mark.parametrize(
    "facts",
    [
        [FIRST, KEPT, replaced(), next_step(NEW)],
        [FIRST, KEPT, replaced()],
        [replaced(), next_step(OLD)],
        [FIRST, KEPT, replaced(at=[]), next_step(OLD)],
        [
            FIRST | {"state": state(steps=0, at="1.0", variables=[4, 5])},
            KEPT,
            replaced(),
            next_step(OLD),
        ],
        [FIRST, KEPT, replaced(), next_step("{'class_name': 'ExponentialDecay'}")],
    ],
    ids=["set again", "no step", "from elsewhere", "no line", "lowered in training", "schedule"],
)
def test_a_rate_that_is_meant(facts):
    assert modes(run(*facts)) == []


def test_the_line_is_where_both_are_decided():
    inner = [["/program/train.py", 3, "load"], *OTHER]
    assert modes(run(FIRST, KEPT, replaced(at=inner), next_step(OLD))) == [("fm46", 20)]
