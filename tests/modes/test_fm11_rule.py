"""The examiner's rule for fm11: no gradients for a model that was never called."""

from dataclasses import replace

import pytest
from recorded import LINE, OTHER, ended, found, loaded, modes, run, updated, variable, written
from strategy_clinic.observer.events import ExceptionRaised, ModelCalled, Outcome, UnbuiltModelRead

EARLY = UnbuiltModelRead(LINE, "model", LINE)


def test_no_gradients_for_an_unbuilt_model():
    (finding,) = found(run(EARLY, updated(gradients=0)))
    assert (finding.mode, finding.line) == ("fm11", 7)
    assert str(finding.proof) == "observed on 2 devices: line 20 gave the optimizer 0 gradients"


def test_a_model_that_has_gradients_later():
    assert modes(run(EARLY, updated())) == []


def test_no_gradients_for_another_reason():
    assert modes(run(updated(gradients=0))) == []


PARTLY = UnbuiltModelRead(LINE, "model", LINE, model=5, variables=(1,))
WHOLE = ModelCalled(OTHER, 4, 1, (1, 8, 9), model=5, trainable=(1, 8))


def test_a_model_of_which_only_some_layers_are_trained():
    events = variable(1), variable(8), PARTLY, WHOLE, updated(trains=(1,)), ended()
    (finding,) = found(run(*events))
    assert (finding.mode, finding.line) == ("fm11", 7)
    assert str(finding.proof).endswith("no update has 1 variable of other layers, such as v8")
    assert modes(run(*events, outcome=Outcome.RAISED)) == []


@pytest.mark.parametrize(
    "events",
    [
        [PARTLY, WHOLE, updated(trains=(1, 8))],
        [PARTLY, WHOLE, updated(trains=(1,)), written(number=8)],
        [PARTLY, WHOLE, updated(trains=(1,)), loaded(variables=(8,))],
        [PARTLY, replace(WHOLE, trainable=(1,)), updated(trains=(1,))],
        [PARTLY, replace(WHOLE, model=6), updated(trains=(1,))],
        [PARTLY, WHOLE, updated(trains=(2,))],
    ],
    ids=["trained", "written", "loaded", "frozen", "another model", "not trained at all"],
)
def test_models_of_which_some_layers_are_trained_and_that_are_right(events):
    assert modes(run(*events, ended())) == []


@pytest.mark.parametrize("before, expected", [([EARLY], [("fm11", 7)]), ([], [])])
@pytest.mark.parametrize(
    "error, text",
    [
        (
            "ValueError",
            "Inputs must be an iterable of at least one Tensor/IndexedSlices with the same dtype.",
        ),
        ("AttributeError", "'NoneType' object has no attribute 'batch_reduce'"),
    ],
    ids=["add_n", "all_reduce"],
)
def test_a_sum_over_no_variables(error, text, before, expected):
    raised = ExceptionRaised(OTHER, error, f"{error}: {text}", ())
    assert modes(run(*before, raised, outcome=Outcome.RAISED)) == expected
    other = replace(raised, traceback=f"{error}: my own words")
    assert modes(run(*before, other, outcome=Outcome.RAISED)) == []
