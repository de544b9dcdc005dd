"""The examiner's rule for fm29: loaded weights that a new optimizer trains on."""

import pytest
from recorded import LINE, OTHER, found, loaded, modes, run, saved, state, updated
from strategy_clinic.examiner.recording import Role
from strategy_clinic.observer.events import CheckpointRestored


def test_an_optimizer_that_starts_anew_after_loading():
    (finding,) = found(run(saved(optimizers=(state(),)), loaded(), updated(trains=(2,), steps=0)))
    assert (finding.mode, finding.line) == ("fm29", 7)
    assert "which was at step 3" in str(finding.message)


@pytest.mark.parametrize(
    "new",
    [state(learning_rate="0.01"), state(kind="SGD"), state(variables=(4, 5))],
    ids=["rate", "kind", "plain"],
)
def test_another_optimizer_is_another_training(new):
    again = updated(
        kind=new.kind,
        learning_rate=new.learning_rate,
        variables=new.variables,
        trains=(2,),
        steps=0,
    )
    kept = state(variables=new.variables)
    assert modes(run(saved(optimizers=(kept,)), loaded(), again)) == []


def test_weights_that_were_loaded_on_no_line_or_are_not_trained():
    again = updated(trains=(2,), steps=0)
    assert modes(run(saved(optimizers=(state(),)), loaded(location=()), again)) == []
    assert modes(run(saved(optimizers=(state(),)), loaded(variables=(5,)), again)) == []


def test_several_updates_are_one_finding():
    again = [updated(trains=(2,), steps=0), updated(LINE, trains=(2,), steps=0)]
    assert modes(run(saved(optimizers=(state(),)), loaded(), *again)) == [("fm29", 7)]


def restarted(steps, path="ck-1", steps_before=3):
    """A second start, which has restored what the first one has saved."""
    before = run(saved(made_at=OTHER, optimizers=(state(steps=steps_before),)), role=Role.STOPPED)
    restored = CheckpointRestored(LINE, path, OTHER, (1, 2), (), "")
    loads = loaded(function="restore", path=path), restored
    return run(*loads, updated(trains=(2,), steps=steps), role=Role.RESTARTED, before=before)


def test_an_optimizer_that_starts_anew_after_a_restart():
    assert modes(restarted(0)) == [("fm29", 20)]  # where it was said what the checkpoint holds


@pytest.mark.parametrize(
    "second",
    [restarted(3), restarted(0, "ck-2"), restarted(0, steps_before=0)],
    ids=["goes on", "another file", "no step before"],
)
def test_a_restart_that_loses_nothing(second):
    assert modes(second) == []
