"""The line that the examiner blames for fm04."""

from recorded import LINE, modes, run, stack
from strategy_clinic.observer.events import ExceptionRaised, Outcome

TEXT = "ValueError: The filename must end in `.weights.h5`. Received: filepath=my"


def blamed(traced, location=LINE):
    return modes(run(ExceptionRaised(location, "ValueError", TEXT, traced), outcome=Outcome.RAISED))


def test_a_line_of_a_traced_function_is_further_in():
    inside = stack("/program/train.py", 31, function="step")
    assert blamed(inside) == [("fm04", 31)]
    assert blamed((*LINE, *inside)) == [("fm04", 7)]
