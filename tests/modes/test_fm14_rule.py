"""The examiner's rules for fm14: copies that part from what they were copied from."""

from dataclasses import replace

import pytest
from recorded import LINE, OTHER, found, modes, run, updated
from strategy_clinic.observer.events import OutdatedCopyUsed, WeightsCopied

COPIED = WeightsCopied(LINE, "set_weights", (1, 2), (3, 4), equal=True)
TOGETHER = updated(trains=(1, 2, 3, 4))


def test_a_copy_that_is_trained_together_with_its_source():
    (finding,) = found(run(COPIED, TOGETHER))
    assert (finding.mode, finding.line) == ("fm14", 7)
    assert "line 20 trains both" in str(finding.proof)


@pytest.mark.parametrize(
    "events",
    [
        [COPIED, updated(trains=(1, 2))],
        [COPIED, updated(trains=(3, 4))],
        [COPIED, TOGETHER, replace(COPIED, equal=False)],
        [replace(COPIED, function="clone_model", equal=False), TOGETHER],
        [TOGETHER, COPIED],
        [replace(COPIED, location=()), TOGETHER],
    ],
    ids=[
        "a target network or a teacher",
        "a model that starts from another",
        "copied again and again",
        "a clone with weights of its own, as in an ensemble",
        "trained before",
        "on no line",
    ],
)
def test_a_copy_that_is_meant(events):
    assert modes(run(*events)) == []


def test_a_copy_that_is_used_after_its_source_was_trained():
    (finding,) = found(run(COPIED, OutdatedCopyUsed(OTHER, "set_weights", LINE, (3, 4))))
    assert (finding.mode, finding.line) == ("fm14", 7)
    assert "line 20 uses the copy after that training" in str(finding.proof)
    assert modes(run(OutdatedCopyUsed(OTHER, "set_weights", (), (3, 4)))) == []
