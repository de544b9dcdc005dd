"""The examiner's rule for fm08: a restart that does not find what was saved."""

from dataclasses import replace

import pytest
from recorded import LINE, OTHER, found, modes, run, saved
from strategy_clinic.examiner.recording import Role
from strategy_clinic.observer.events import CheckpointRestored, SaveKind

BEFORE = run(saved(made_at=OTHER), role=Role.STOPPED)


def restored(path="ck-1", made_at=OTHER):
    return CheckpointRestored(LINE, path, made_at, (1, 2), (), "")


def test_a_restart_that_does_not_find_what_was_saved():
    (finding,) = found(run(restored(None), before=BEFORE))
    assert (finding.mode, finding.line) == ("fm08", 7)
    assert "ck-1 was there" in str(finding.proof)


@pytest.mark.parametrize(
    "events, before",
    [
        ([restored(None), saved(made_at=OTHER)], None),
        ([restored(), restored(None)], BEFORE),
        ([restored(None)], run(saved(made_at=LINE))),
        ([restored(None)], run(saved(made_at=OTHER, kind=SaveKind.MODEL))),
        ([], BEFORE),
        ([replace(restored(None), location=())], BEFORE),
    ],
    ids=[
        "first start",
        "found at first",
        "another object",
        "a model's file",
        "no restore",
        "no line",
    ],
)
def test_a_restore_that_has_nothing_to_find(events, before):
    assert modes(run(*events, before=before)) == []
