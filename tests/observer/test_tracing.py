"""Calls of traced functions that all trace: after how many of them, and for which causes, they are reported."""

from types import SimpleNamespace

import pytest
from recorded import LINE, OTHER
from strategy_clinic.observer.events import FunctionRetraced, RetraceCause
from strategy_clinic.observer.tracing import Tracing

NUMBER, FUNCTION, TRACED, SHAPE, OBJECT = RetraceCause


def tracing_to(emitted):
    return Tracing(
        SimpleNamespace(provenance=SimpleNamespace(stack=lambda: LINE), emit=emitted.append)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "causes, calls",
    [
        ([TRACED] * 9, 8),
        ([TRACED] * 7, 0),
        ([TRACED, *[FUNCTION] * 8], 8),
        ([TRACED, *[NUMBER] * 8], 5),
        ([TRACED, FUNCTION, *[NUMBER] * 8], 0),
        ([TRACED, *[SHAPE] * 8], 8),
        ([TRACED, *[SHAPE] * 6], 0),
        ([TRACED, *[OBJECT] * 8], 8),
    ],
)
def test_calls_that_all_trace(causes, calls):
    emitted, made = [], []
    tracing = tracing_to(emitted)
    for number, cause in enumerate(causes):
        made.append((cause, given([number])))
        tracing.report(made, (number,), OTHER)
    last = causes[calls - 1]
    made_at = OTHER if last is TRACED else ()
    assert emitted == ([FunctionRetraced(LINE, calls, last, 0, made_at)] if calls else [])


def given(numbers=(), shapes=()):
    return tuple(numbers), tuple(shapes)


@pytest.mark.slow
@pytest.mark.parametrize(
    "first_call, args, earlier, cause",
    [
        (True, (1,), [], TRACED),
        (False, (2,), [given([1])], NUMBER),
        (False, (1, "test"), [given([1])], OBJECT),
        (False, ((2, 3),), [given([2, 1])], NUMBER),
        (False, (lambda: 1, 2), [given([1])], FUNCTION),
        (False, ("train",), [given()], OBJECT),
    ],
)
def test_what_was_new(first_call, args, earlier, cause):
    found, _ = tracing_to([]).cause(first_call, args, [(TRACED, each) for each in earlier])
    assert found is cause


@pytest.mark.slow
def test_a_shape_that_was_new():
    import numpy as np

    tracing, earlier = tracing_to([]), []
    for length in (1, 2, 3, 2):
        args = np.zeros((4, length)), 1.0, "train"
        earlier.append(tracing.cause(not earlier, args, earlier))
    assert [cause for cause, _ in earlier] == [TRACED, SHAPE, SHAPE, OBJECT]
    assert earlier[0][1] == given([1.0], ["(4, 1)"])
