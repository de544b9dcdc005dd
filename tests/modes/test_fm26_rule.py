"""The examiner's rule for fm26: a training that goes on with larger steps."""

from recorded import OTHER, found, loaded, modes, run, saved, updated
from strategy_clinic.observer.events import ModelCalled


def goes_on(size, trains=2):
    then, now = ModelCalled(OTHER, 8, 1, (1,)), ModelCalled(OTHER, size, 2, (2,))
    return run(then, saved(held=[1]), loaded(), now, updated(trains=(trains,), steps=9))


def test_a_training_that_goes_on_with_larger_steps():
    (finding,) = found(goes_on(8))
    assert (finding.mode, finding.line) == ("fm26", 20)
    assert "takes in 16 examples on 2 replicas, and 8 before" in str(finding.message)


def test_a_training_that_goes_on_with_steps_as_before():
    assert modes(goes_on(4)) == []


def test_another_model_is_trained():
    assert modes(goes_on(8, trains=5)) == []
