"""The examiner's rule for fm42, and what it says of the error, which is one of a graph."""

import pytest
from recorded import LINE, found, modes, run
from strategy_clinic.observer.events import DataRanOut, EpochsLeftOut, ExceptionRaised, Outcome

TEXT = """Graph execution error:
  (0) OUT_OF_RANGE:  End of sequence
\t [[{{node IteratorGetNext}}]]
0 successful operations.
0 derived errors ignored. [Op:__inference_step_12]"""


def test_an_error_of_a_graph_is_told_by_its_reason():
    raised = ExceptionRaised(LINE, "OutOfRangeError", f"ValueError: {TEXT}", ())
    (finding,) = found(run(raised, outcome=Outcome.RAISED))
    assert (finding.mode, str(finding.message)) == ("fm42", "OutOfRangeError: End of sequence")


@pytest.mark.parametrize("location, expected", [(LINE, [("fm42", 7)]), ((), [])])
def test_data_that_end_before_the_last_step(location, expected):
    assert modes(run(DataRanOut(location, 6), DataRanOut(location, 6))) == expected


def test_data_of_unknown_length_that_end():
    assert modes(run(DataRanOut(LINE, 0))) == []


EMPTY = EpochsLeftOut(LINE, 3, 1, 0, False)


def test_an_epoch_without_a_step():
    (finding,) = found(run(EMPTY))
    assert (finding.mode, finding.line) == ("fm42", 7)
    assert str(finding.message) == "2 of 3 epochs make no step: the data have ended before"


@pytest.mark.parametrize(
    "events",
    [[EpochsLeftOut((), 3, 1, 0, False)], [DataRanOut(LINE, 0, True), EMPTY]],
    ids=["nobody can place it", "a generator, which another mode is about"],
)
def test_an_epoch_of_which_nothing_is_said_here(events):
    assert "fm42" not in dict(modes(run(*events)))
