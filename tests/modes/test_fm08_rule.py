"""The examiner's rule for fm08: a restart that does not find what was saved."""

from dataclasses import replace

import pytest
from recorded import LINE, OTHER, ended, found, modes, run, saved
from strategy_clinic.examiner.recording import Role
from strategy_clinic.observer.events import (
    CheckpointRestored,
    CheckpointSought,
    LoadUnused,
    Outcome,
    SaveKind,
)

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


# A program that asks for its latest checkpoint


def sought(path=None, nearby=("runs/monday/ck-1",), folder="runs", **changes):
    return replace(CheckpointSought(LINE, folder, path, tuple(nearby)), **changes)


SAVED = saved(path="runs/monday/ck-1")
KERAS = saved(path="runs/monday/ck-1", kind=SaveKind.MODEL)


@pytest.mark.parametrize(
    "recording",
    [
        run(SAVED, sought()),
        run(saved(path="/home/me/runs/monday/ck-1"), sought()),
        run(KERAS, sought()),
        run(sought(), before=run(SAVED, role=Role.STOPPED)),
    ],
    ids=["below the folder", "by its whole path", "a file of Keras", "before a restart"],
)
def test_a_checkpoint_near_the_place_where_it_is_sought(recording):
    (finding,) = found(recording)
    assert (finding.mode, finding.line) == ("fm08", 7)
    assert "ck-1 was there" in str(finding.proof)


@pytest.mark.parametrize(
    "events",
    [
        [sought(), SAVED],
        [SAVED, sought("runs/monday/ck-1", nearby=())],
        [SAVED, sought(nearby=())],
        [saved(path="runs/friday/ck-1"), sought()],
        [SAVED, sought(), sought("runs/monday/ck-1", nearby=())],
        [SAVED, sought(), restored("runs/monday/ck-1")],
        [SAVED, sought(), saved(path="runs/ck-1")],
        [KERAS, sought(), saved(path="elsewhere/ck-1")],
        [SAVED, sought(location=())],
    ],
    ids=[
        "a first start",
        "found",
        "nothing is near",
        "near is what another program saved",
        "found in the next folder",
        "restored nevertheless",
        "the first start of a second phase",
        "files of Keras beside checkpoints",
        "on no line",
    ],
)
def test_a_checkpoint_that_is_rightly_not_found(events):
    assert modes(run(*events)) == []


ELSEWHERE = SAVED, sought(folder="checkpoints", nearby=())


def test_a_checkpoint_that_is_sought_in_another_folder():
    (finding,) = found(run(*ELSEWHERE, restored(None), ended()))
    assert (finding.mode, finding.line) == ("fm08", 7)
    assert "restore restores nothing" in str(finding.message)
    assert "this program has saved runs/monday/ck-1" in str(finding.proof)


@pytest.mark.parametrize(
    "events",
    [
        [*ELSEWHERE, ended()],
        [*reversed(ELSEWHERE), restored(None), ended()],
        [*ELSEWHERE, restored(None), saved(path="checkpoints/ck-1"), ended()],
        [KERAS, ELSEWHERE[1], restored(None), ended()],
    ],
    ids=["not restored", "a first start", "a second phase", "files of Keras"],
)
def test_another_folder_that_is_rightly_empty(events):
    assert modes(run(*events)) == []


def test_another_folder_of_a_program_that_did_not_finish():
    assert modes(run(*ELSEWHERE, restored(None), outcome=Outcome.STOPPED)) == []


def test_a_model_that_is_loaded_and_not_used():
    (finding,) = found(run(LoadUnused(LINE, "best.keras", "best", "model")))
    assert (finding.mode, finding.line) == ("fm08", 7)
    assert "model, which has the same shapes and other values, is used" in str(finding.proof)
    assert modes(run(LoadUnused((), "best.keras", "best", "model"))) == []
