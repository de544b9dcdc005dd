"""What the examiner says of fm42, whose error is one of a graph."""

from recorded import LINE, found, run
from strategy_clinic.observer.events import ExceptionRaised, Outcome

TEXT = """Graph execution error:
  (0) OUT_OF_RANGE:  End of sequence
\t [[{{node IteratorGetNext}}]]
0 successful operations.
0 derived errors ignored. [Op:__inference_step_12]"""


def test_an_error_of_a_graph_is_told_by_its_reason():
    raised = ExceptionRaised(LINE, "OutOfRangeError", f"ValueError: {TEXT}", ())
    (finding,) = found(run(raised, outcome=Outcome.RAISED))
    assert (finding.mode, str(finding.message)) == ("fm42", "OutOfRangeError: End of sequence")
