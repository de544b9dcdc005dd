"""The examiner's rule for fm35: what was made after a restore."""

from dataclasses import replace

import pytest
from recorded import LINE, OTHER, ended, found, modes, run, variable
from strategy_clinic.observer.events import (
    CheckpointRestored,
    ExceptionRaised,
    Frame,
    Owner,
    RestoredBeforeBuild,
    UnbuiltModelRead,
)


def early(*numbers):
    return ended(
        restored_before_build=(RestoredBeforeBuild("ck-1", numbers, "Found 1 object", LINE),)
    )


def test_what_was_made_after_a_restore():
    (finding,) = found(run(variable(1), early(1)))
    assert (finding.mode, finding.line) == ("fm35", 7)
    assert str(finding.proof) == "observed in a run without a strategy: v1 is in ck-1"


def test_a_restore_on_no_line_of_the_program():
    restore = replace(early(1).restored_before_build[0], location=())
    assert modes(run(variable(1), ended(restored_before_build=(restore,)))) == []


def test_nothing_was_made_after_a_restore():
    assert modes(run(variable(1), early())) == []


RESTORE, MAIN = ("load", 7), ("main", 30)


def frames(places):
    return tuple(Frame("/program/train.py", number, name) for name, number in places)


@pytest.mark.parametrize(
    "restored_in, made_in, line",
    [
        ([RESTORE, MAIN], [("build", 12), ("main", 31)], 30),
        ([RESTORE, MAIN], [("load", 9), ("main", 30)], 7),
        ([("__init__", 7), MAIN], [("train", 12), ("main", 31)], 7),
        ([RESTORE, MAIN], [("other", 12)], 7),
    ],
    ids=["called too early", "in one function", "in a constructor", "in others"],
)
def test_the_line_that_decides_about_the_order(restored_in, made_in, line):
    made = variable(1, location=frames(made_in))
    restore = replace(early(1).restored_before_build[0], location=frames(restored_in))
    assert modes(run(made, ended(restored_before_build=(restore,)))) == [("fm35", line)]


@pytest.mark.parametrize(
    "restored_in, raised_in, mode, line",
    [
        ([RESTORE, MAIN], [("build", 12), ("main", 31)], "fm35", 30),
        ([("build", 12), MAIN], [("build", 12), MAIN], "fm06", 12),
    ],
    ids=["where the variables are made", "by the restore itself"],
)
def test_a_value_that_does_not_fit_what_is_made_after_the_restore(
    restored_in, raised_in, mode, line
):
    text = (
        "ValueError: Cannot assign value to variable ' Variable:0': Shape mismatch."
        "The variable shape (3, 6), and the assigned value shape (6,) are incompatible."
    )
    raised = ExceptionRaised(frames(raised_in), "ValueError", text, ())
    made = variable(1, location=frames([("build", 12), ("main", 31)]))
    restore = replace(early(1).restored_before_build[0], location=frames(restored_in))
    first = modes(run(made, raised, ended(restored_before_build=(restore,))))[0]
    assert first == (mode, line)


# A restore into a model without variables

COUNTER = variable(5, maker=Owner.CHECKPOINT)
EMPTY = UnbuiltModelRead(OTHER, "model", LINE)


def restored(*numbers, path="ck-1"):
    return CheckpointRestored(LINE, path, LINE, numbers, (), "")


def test_a_restore_into_a_model_without_variables():
    (finding,) = found(run(COUNTER, restored(5), EMPTY))
    assert (finding.mode, finding.line) == ("fm35", 7) and "layers" in finding.fix
    assert str(finding.proof) == "observed in a run without a strategy: it has none at line 20"


@pytest.mark.parametrize(
    "events",
    [
        [restored(5), EMPTY, variable(6)],
        [variable(1), restored(1, 5), EMPTY],
        [EMPTY, restored(5)],
        [restored(5, path=None), EMPTY],
        [restored(5), replace(EMPTY, variables=(1,))],
        [restored(5)],
    ],
    ids=["filled later", "another one is filled", "asked before", "no file", "some", "not asked"],
)
def test_a_restore_that_may_fill_something(events):
    assert modes(run(COUNTER, *events)) == []
