"""The examiner's rules for fm07: numbers of Python that a trace froze."""

import pytest
from recorded import LINE, found, modes, run
from strategy_clinic.observer.events import CounterFrozen, PythonValueFrozen, RandomNumberFrozen


@pytest.mark.parametrize(
    "frozen, message, proof",
    [
        (
            PythonValueFrozen(LINE, "beta", "step", "0.0", "0.1"),
            "beta was 0.0 when this was traced, and stays so in the graph",
            "the program has set it to 0.1 since",
        ),
        (
            CounterFrozen(LINE, "self.steps", "step", "1"),
            "step counts self.steps only while it is traced",
            "it is still 1 after more calls",
        ),
        (
            RandomNumberFrozen(LINE, "np.random.normal", "step"),
            "np.random.normal is called once, while step is traced",
            "the generator moved on in the trace",
        ),
    ],
    ids=["number", "counter", "random number"],
)
def test_what_a_trace_froze(frozen, message, proof):
    (finding,) = found(run(frozen))
    assert (finding.mode, finding.line) == ("fm07", 7)
    assert message in str(finding.message) and proof in str(finding.proof)


def test_a_program_that_changes_nothing():
    assert modes(run()) == []
