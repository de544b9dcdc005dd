"""The examiner's rule for fm26: a training that goes on with larger steps."""

from dataclasses import replace

import pytest
from recorded import OTHER, found, loaded, modes, run, saved, updated
from strategy_clinic.observer.events import ModelCalled

THEN, NOW = ModelCalled(OTHER, 8, 1, (1,)), ModelCalled(OTHER, 8, 2, (2,))


def goes_on(size, trains=2):
    then, now = ModelCalled(OTHER, 8, 1, (1,)), ModelCalled(OTHER, size, 2, (2,))
    return run(then, saved(held=[1]), loaded(), now, updated(trains=(trains,), steps=9))


def test_a_training_that_goes_on_with_larger_steps():
    (finding,) = found(goes_on(8))
    assert (finding.mode, finding.line) == ("fm26", 20)
    assert "takes in 16 examples on 2 replicas, and 8 before" in str(finding.message)


def test_a_training_that_goes_on_with_steps_as_before():
    assert modes(goes_on(4)) == []


@pytest.mark.parametrize(
    "events",
    [
        [THEN, saved(held=[1]), loaded(), replace(NOW, replicas=1)],
        [THEN, saved(held=[1]), loaded(), replace(NOW, location=())],
        [THEN, saved(held=[5]), loaded(), NOW],
        [THEN, saved(held=[1]), loaded(path="ck-2"), NOW],
        [THEN, saved(held=[1]), NOW],
        [saved(held=[1]), loaded(), NOW],
    ],
    ids=[
        "as many replicas",
        "no line",
        "another model saved",
        "another file",
        "not loaded",
        "not called before",
    ],
)
def test_calls_that_do_not_go_on_with_what_was_saved(events):
    assert modes(run(*events, updated(trains=(2,), steps=9))) == []


def test_another_model_is_trained():
    assert modes(goes_on(8, trains=5)) == []
