"""Calls of traced functions that all trace: after how many of them, and for which causes, they are reported."""

from types import SimpleNamespace

import pytest
from strategy_clinic.observer.events import FunctionRetraced, RetraceCause
from strategy_clinic.observer.tracing import Tracing

NUMBER, FUNCTION, TRACED = RetraceCause


@pytest.mark.slow
@pytest.mark.parametrize(
    "causes, calls",
    [
        ([TRACED] * 9, 8),
        ([TRACED] * 7, 0),
        ([TRACED, *[FUNCTION] * 8], 8),
        ([TRACED, *[NUMBER] * 8], 5),
        ([TRACED, FUNCTION, *[NUMBER] * 8], 0),
    ],
)
def test_calls_that_all_trace(causes, calls):
    emitted, made = [], []
    provenance = SimpleNamespace(stack=lambda: ())
    tracing = Tracing(SimpleNamespace(provenance=provenance, emit=emitted.append))
    for number, cause in enumerate(causes):
        made.append((cause, (number,)))
        tracing.report(made, (number,))
    assert emitted == ([FunctionRetraced((), calls, causes[calls - 1], 0)] if calls else [])
