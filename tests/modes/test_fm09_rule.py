"""The examiner's rule for fm09: slots that were not there when the file was saved."""

from dataclasses import replace

import pytest
from recorded import LINE, OTHER, found, modes, run, saved, state, variable
from strategy_clinic.observer.events import CheckpointRestored, Owner

SLOTS = [variable(1), variable(4, maker=Owner.OPTIMIZER), variable(5, maker=Owner.OPTIMIZER)]


def restored(steps=3, unmatched="Found 2 objects", uses=(4, 5)):
    optimizers = (state(steps=steps, variables=uses),)
    return CheckpointRestored(LINE, "ck-1", OTHER, (1, 4, 5), optimizers, unmatched)


def test_slots_that_were_not_there_when_the_file_was_saved():
    (finding,) = found(run(*SLOTS, saved(held=[1]), restored()))
    assert (finding.mode, finding.line) == ("fm09", 20)
    assert str(finding.proof) == "observed on 2 devices: after line 7 v4 kept the value of step 3"


def test_what_is_new_and_no_optimizers_is_no_slot():
    layers = [variable(1), variable(4), variable(5)]
    assert modes(run(*layers, saved(held=[1]), restored())) == []


@pytest.mark.parametrize(
    "events",
    [
        [saved(held=[1]), restored(steps=0)],
        [saved(held=[1]), restored(unmatched="")],
        [saved(held=[1, 4, 5]), restored()],
        [restored()],
        [saved(held=[1], location=()), restored()],
        [saved(held=[1]), restored(uses=(9,))],
        [saved(held=[1], path=""), replace(restored(), path=None)],
    ],
    ids=[
        "no step has changed them",
        "all matched",
        "all saved",
        "saved elsewhere",
        "no line",
        "another optimizer",
        "no path",
    ],
)
def test_slots_that_are_rightly_as_they_are(events):
    assert modes(run(*SLOTS, *events)) == []
