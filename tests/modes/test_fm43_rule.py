"""The examiner's rule for fm43: a call that traces again each time."""

from recorded import LINE, modes, run, stack
from strategy_clinic.observer.events import FunctionRetraced, RetraceCause


def retraced(location=LINE, argument=0):
    return FunctionRetraced(location, 5, RetraceCause.NUMBER, argument)


def test_a_call_that_traces_again_each_time():
    assert modes(run(retraced())) == [("fm43", 7)]
    assert modes(run(retraced(()))) == []


def test_the_line_that_made_the_number_is_blamed(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("for n in range(9):\n    rate = 1 / (n + 1)\n    train_step(rate)\n")
    here = stack(path, 3, function="<module>")
    assert modes(run(FunctionRetraced(here, 8, RetraceCause.SHAPE, 0))) == [("fm43", 3)]
    made = FunctionRetraced(here, 8, RetraceCause.TRACED_FUNCTION, 0, stack(path, 1))
    assert modes(run(made)) == [("fm43", 1)]
    assert modes(run(retraced(here))) == [("fm43", 2)]
    assert modes(run(retraced(here, argument=1))) == [("fm43", 3)]


def test_the_call_is_blamed_for_a_count_that_begins_above_it(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("for epoch in data:\n    total, n = 0.0, 0\n    train_step(n)\n    n += 1\n")
    assert modes(run(retraced(stack(path, 3, function="<module>")))) == [("fm43", 3)]
