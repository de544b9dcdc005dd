"""The examiner's rule for fm46: a learning rate that a restore has brought back."""

import pytest
from recorded import LINE, OTHER, found, modes, run, saved, stack, state, updated
from strategy_clinic.observer.events import (
    LearningRateRead,
    LearningRateRestored,
    LearningRateWritten,
)

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


# A rate that is read before the restore, and written back

PROGRAM = """\
rate = float(optimizer.learning_rate.numpy())
print(float(optimizer.learning_rate.numpy()))
unused = float(optimizer.learning_rate.numpy())
checkpoint.restore(path)
optimizer.learning_rate.assign(rate)
"""


def read_and_written(folder, line, *, value=0.05, rate=0.05, then=()):
    path = folder / "train.py"
    path.write_text(PROGRAM)
    read = LearningRateRead(stack(path, line), 7, value)
    write = LearningRateWritten(stack(path, 5), 7, rate)
    return run(read, replaced(stack(path, 4)), *then, write)


def test_a_rate_that_is_read_too_early(tmp_path):
    (finding,) = found(read_and_written(tmp_path, 1))
    assert (finding.mode, finding.line) == ("fm46", 1)
    assert "before the restore, which replaces 0.05 by 0.25" in str(finding.message)
    assert str(finding.proof).endswith("0.05 was written back at line 5")


@pytest.mark.parametrize(
    "line, changes",
    [
        (2, {}),
        (3, {}),
        (1, {"rate": 0.25}),
        (1, {"value": 0.25, "rate": 0.25}),
        (1, {"then": [LearningRateWritten(OTHER, 7, 0.25)]}),
        (1, {"then": [LearningRateWritten(OTHER, 7, 0.1)]}),
    ],
    ids=["printed", "not used", "another rate", "the restored rate", "as restored", "chosen first"],
)
def test_a_rate_that_is_not_written_back(tmp_path, line, changes):
    assert modes(read_and_written(tmp_path, line, **changes)) == []


def test_a_rate_that_is_read_after_the_restore(tmp_path):
    recording = read_and_written(tmp_path, 1)
    read, restored, write = recording.events
    assert modes(run(restored, read, write)) == []
    assert modes(run(read, write, restored)) == []
