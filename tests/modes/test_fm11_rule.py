"""The examiner's rule for fm11: no gradients for a model that was never called."""

import pytest
from recorded import LINE, OTHER, found, modes, run, updated
from strategy_clinic.observer.events import ExceptionRaised, Outcome, UnbuiltModelRead

EARLY = UnbuiltModelRead(LINE, "model", LINE)


def test_no_gradients_for_an_unbuilt_model():
    (finding,) = found(run(EARLY, updated(gradients=0)))
    assert (finding.mode, finding.line) == ("fm11", 7)
    assert str(finding.proof) == "observed on 2 devices: line 20 gave the optimizer 0 gradients"


def test_a_model_that_has_gradients_later():
    assert modes(run(EARLY, updated())) == []


def test_no_gradients_for_another_reason():
    assert modes(run(updated(gradients=0))) == []


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
