"""The examiner's rules for fm07: numbers of Python that a trace froze."""

import pytest
from recorded import LINE, found, modes, run
from strategy_clinic.observer.events import (
    CounterFrozen,
    ExceptionRaised,
    PythonValueFrozen,
    RandomNumberFrozen,
)


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


# Tensors of a finished trace, which are of fm33

MESSAGE = "TypeError: float() argument must be a string or a real number, not 'SymbolicTensor'\n"
TRACEBACK = 'Traceback (most recent call last):\n  File "/program/train.py", line 7, in main\n'
IN_TRACE = (
    '  File "/lib/tensorflow/python/framework/func_graph.py", line 1, in func_graph_from_py_func\n'
)
OF_TENSOR = '  File "/lib/tensorflow/python/framework/tensor.py", line 260, in __getattr__\n'
IN_FIT = '  File "/lib/keras/src/utils/traceback_utils.py", line 113, in error_handler\n'
IN_CALLBACK = (LINE[0]._replace(function="on_epoch_end"),)


@pytest.mark.parametrize(
    "traceback, traced, at, expected",
    [
        (TRACEBACK + MESSAGE, (), LINE, "fm33"),
        (TRACEBACK + OF_TENSOR + MESSAGE, (), LINE, "fm33"),
        (TRACEBACK + IN_TRACE + OF_TENSOR + MESSAGE, (), LINE, "fm07"),
        (TRACEBACK + MESSAGE, LINE, LINE, "fm07"),
        (TRACEBACK + IN_FIT + MESSAGE, (), LINE, "fm07"),
        (TRACEBACK + IN_FIT + MESSAGE, (), IN_CALLBACK, "fm33"),
    ],
    ids=[
        "after a trace",
        "an attribute",
        "in a trace",
        "in a traced function",
        "in a step",
        "in a callback",
    ],
)
def test_a_tensor_that_is_converted(traceback, traced, at, expected):
    assert modes(run(ExceptionRaised(at, "TypeError", traceback, traced))) == [(expected, 7)]
