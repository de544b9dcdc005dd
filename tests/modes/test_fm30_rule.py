"""The examiner's fix for fm30 where no file was saved."""

import pytest
from recorded import found, run, stack
from strategy_clinic.observer.events import ExceptionRaised, Outcome

TEXT = "TypeError: Could not locate function 'far'. Make sure custom classes and functions are decorated"


@pytest.mark.parametrize(
    "call, of_clone", [("clone_model(net)", True), ("load_model(path)", False)]
)
def test_a_clone_has_a_fix_of_its_own(tmp_path, call, of_clone):
    path = tmp_path / "train.py"
    path.write_text(f"net = {call}\n")
    raised = ExceptionRaised(stack(path, 1), "TypeError", TEXT, ())
    (finding,) = found(run(raised, outcome=Outcome.RAISED))
    assert finding.mode == "fm30" and ("clone_model" in finding.fix) is of_clone
