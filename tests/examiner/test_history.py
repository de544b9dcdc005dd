"""What a run has read, written, saved and loaded, and when."""

import pytest
from recorded import LINE, ended, loaded, run, saved, state
from strategy_clinic.examiner.history import goes_back
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.restarts import resumed
from strategy_clinic.observer.events import CheckpointRestored


def restored(before, after, variables=(7,)):
    """A restore of an optimizer with these steps from a file that has others."""
    states = [(state(steps=steps, variables=variables),) for steps in (before, after)]
    yield CheckpointRestored(LINE, "ck-1", LINE, (), states[0], "")
    yield loaded(path="ck-1", optimizers=states[1])


@pytest.mark.parametrize(
    "events, later, expected",
    [
        ([*restored(8, 4)], 8, True),
        ([*restored(8, 4)], 4, False),
        ([*restored(0, 4)], 8, False),
        ([*restored(8, 4, variables=(9,))], 8, False),
        ([loaded(path="ck-1")], 8, False),
    ],
    ids=["trained on", "the best state at the end", "at the start", "of another", "of weights"],
)
def test_a_program_that_goes_back(events, later, expected):
    save = saved(optimizers=(state(steps=8, variables=(7,)),))
    end = ended(optimizers=(state(steps=later, variables=(7,)),))
    assert goes_back(run(*([save] if later == 4 else []), *events, end)) is expected


@pytest.mark.parametrize("back_to, is_compared", [(4, False), (8, True)])
def test_a_restart_is_compared_with_a_run_that_never_goes_back(back_to, is_compared):
    end = ended(optimizers=(state(steps=8, variables=(7,)),))
    whole = run(*restored(8, back_to), end)
    killed = run(saved(path="ck-1"), role=Role.STOPPED)
    again = run(loaded(path="ck-1"), role=Role.RESTARTED, before=killed, whole=whole)
    assert [*resumed([again])] == [(again, whole)] * is_compared
