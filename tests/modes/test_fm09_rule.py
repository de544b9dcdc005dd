"""The examiner's rule for fm09: slots that were not there when the file was saved."""

import pytest
from recorded import LINE, OTHER, found, modes, run, saved, state, variable
from strategy_clinic.observer.events import CheckpointRestored, Owner

SLOTS = [variable(1), variable(4, maker=Owner.OPTIMIZER), variable(5, maker=Owner.OPTIMIZER)]


def restored(steps=3, unmatched="Found 2 objects", location=LINE):
    return CheckpointRestored(location, "ck-1", OTHER, (1, 4, 5), (state(steps=steps),), unmatched)


def test_slots_that_were_not_there_when_the_file_was_saved():
    (finding,) = found(run(*SLOTS, saved(held=[1]), restored()))
    assert (finding.mode, finding.line) == ("fm09", 20)
    assert str(finding.proof) == "observed on 2 devices: after line 7 v4 kept the value of step 3"


@pytest.mark.parametrize(
    "events",
    [
        [saved(held=[1]), restored(steps=0)],
        [saved(held=[1]), restored(unmatched="")],
        [saved(held=[1, 4, 5]), restored()],
        [restored()],
    ],
    ids=["no step has changed them", "all matched", "all saved", "saved elsewhere"],
)
def test_slots_that_are_rightly_as_they_are(events):
    assert modes(run(*SLOTS, *events)) == []
