"""The examiner's rule for fm11: no gradients for a model that was never called."""

from recorded import LINE, found, modes, run, updated
from strategy_clinic.observer.events import UnbuiltModelRead

EARLY = UnbuiltModelRead(LINE, "model", LINE)


def test_no_gradients_for_an_unbuilt_model():
    (finding,) = found(run(EARLY, updated(gradients=0)))
    assert (finding.mode, finding.line) == ("fm11", 7)
    assert str(finding.proof) == "observed on 2 devices: line 20 gave the optimizer 0 gradients"


def test_a_model_that_has_gradients_later():
    assert modes(run(EARLY, updated())) == []


def test_no_gradients_for_another_reason():
    assert modes(run(updated(gradients=0))) == []
