"""What a run has read, written, saved and loaded, and when."""

import pytest
from recorded import LINE, ended, loaded, run, saved, state
from strategy_clinic.examiner.history import goes_back
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
