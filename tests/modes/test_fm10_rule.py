"""The line that the examiner blames for fm10."""

from recorded import LINE, OTHER, modes, run
from strategy_clinic.observer.events import ExceptionRaised, Outcome, UsedOptimizerCompiled

TEXT = "ValueError: Unknown variable: <Variable path=dense/kernel>. This optimizer can only be called for the variables"
RAISED = ExceptionRaised(OTHER, "ValueError", f"{TEXT} it was originally built with.", ())


def test_an_optimizer_is_blamed_where_it_got_another_model():
    assert modes(run(RAISED, outcome=Outcome.RAISED)) == [("fm10", 20)]
    nowhere = UsedOptimizerCompiled((), (1,))
    assert modes(run(nowhere, RAISED, outcome=Outcome.RAISED)) == [("fm10", 20)]
    again = UsedOptimizerCompiled(LINE, (1,))
    assert modes(run(again, RAISED, outcome=Outcome.RAISED)) == [("fm10", 7)]
