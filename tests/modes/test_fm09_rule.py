"""The examiner's rule for fm09: slots that were not there when the file was saved."""

from dataclasses import replace

import pytest
from recorded import (
    LINE,
    OTHER,
    ended,
    found,
    loaded,
    modes,
    run,
    saved,
    state,
    updated,
    variable,
    written,
)
from strategy_clinic.observer.events import CheckpointRestored, Owner

WEIGHT, *LATER = SLOTS = [
    variable(1),
    variable(4, maker=Owner.OPTIMIZER),
    variable(5, maker=Owner.OPTIMIZER),
]


def restored(steps=3, unmatched="Found 2 objects", uses=(4, 5)):
    optimizers = (state(steps=steps, variables=uses),)
    return CheckpointRestored(LINE, "ck-1", OTHER, (1, 4, 5), optimizers, unmatched)


def test_slots_that_were_not_there_when_the_file_was_saved():
    (finding,) = found(run(WEIGHT, saved(held=[1]), *LATER, restored()))
    assert (finding.mode, finding.line) == ("fm09", 20)
    assert (
        str(finding.proof)
        == "observed in a run without a strategy: after line 7 v4 kept the value of step 3"
    )


def test_what_is_new_and_no_optimizers_is_no_slot():
    assert modes(run(WEIGHT, saved(held=[1]), variable(4), variable(5), restored())) == []


@pytest.mark.parametrize(
    "events",
    [
        [*LATER, saved(held=[1]), restored()],
        [saved(held=[1]), *LATER, restored(steps=0)],
        [saved(held=[1]), *LATER, restored(unmatched="")],
        [saved(held=[1, 4, 5]), *LATER, restored()],
        [*LATER, restored()],
        [saved(held=[1], location=()), *LATER, restored()],
        [saved(held=[1]), *LATER, restored(uses=(9,))],
        [saved(held=[1], path=""), *LATER, replace(restored(), path=None)],
    ],
    ids=[
        "there and left out",
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
    assert modes(run(WEIGHT, *events)) == []


# Weights of the start, with slots of the training since then

START = saved(held=[1])
UPDATE = updated(variables=(4, 5, 6), steps=0)
BACK = loaded(variables=(1,), optimizers=(state(),))
AT_END = ended(optimizers=(state(steps=9),))


@pytest.mark.parametrize("then", [AT_END, UPDATE], ids=["steps at the end", "an update"])
def test_weights_of_the_start_that_are_trained_on_with_the_slots_of_the_training_before(then):
    (finding,) = found(run(*SLOTS, variable(6), START, UPDATE, BACK, then))
    assert (finding.mode, finding.line) == ("fm09", 20)
    assert "line 7 loads them after updates by Adam, whose v6 stays" in str(finding.proof)


@pytest.mark.parametrize(
    "events",
    [
        [UPDATE, START, BACK, AT_END],
        [START, UPDATE, BACK, ended(optimizers=(state(),))],
        [START, UPDATE, replace(BACK, variables=(1, 6)), AT_END],
        [START, UPDATE, BACK, written(number=6), AT_END],
        [START, UPDATE, replace(BACK, optimizers=(state(variables=(4, 5)),)), AT_END],
        [START, UPDATE, replace(BACK, optimizers=(state(trains=(9,)),)), AT_END],
        [START, UPDATE, replace(BACK, optimizers=(state(steps=0),)), AT_END],
        [replace(START, location=()), UPDATE, BACK, AT_END],
    ],
    ids=[
        "saved in the training",
        "not trained on",
        "loaded with the slots",
        "reset by the program",
        "without slots",
        "of another model",
        "a new optimizer",
        "no line",
    ],
)
def test_weights_that_are_loaded_again_without_slots(events):
    assert "fm09" not in dict(modes(run(*SLOTS, variable(6), *events)))
