"""Calls of traced functions that all trace: after how many of them, and for which causes, they are reported."""

from types import SimpleNamespace

import pytest
from recorded import LINE, OTHER
from strategy_clinic.observer.events import FunctionRetraced, RetraceCause
from strategy_clinic.observer.tracing import CallSite, Tracing

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
        ([TRACED, *[NUMBER] * 8], 4),
        ([TRACED, FUNCTION, *[NUMBER] * 8], 0),
        ([TRACED, *[SHAPE] * 8], 8),
        ([TRACED, *[SHAPE] * 6], 0),
        ([TRACED, *[OBJECT] * 8], 8),
    ],
)
def test_calls_that_all_trace(causes, calls):
    emitted, site = [], CallSite()
    tracing = tracing_to(emitted)
    for number, cause in enumerate(causes):
        site.causes.append((cause, given([number])))
        tracing.report(site, (number,), OTHER)
    last = causes[calls - 1]
    made_at = OTHER if last is TRACED else ()
    assert emitted == ([FunctionRetraced(LINE, calls, last, 0, made_at)] if calls else [])


@pytest.mark.slow
@pytest.mark.parametrize(
    "numbers, calls",
    [([3, 4, 5, 6], 4), ([1, 2, 4, 8], 0), ([1, 2, 4, 8, 16], 5), ([0.1, 0.2, 0.3, 0.4], 0)],
)
def test_a_number_that_counts_the_calls(numbers, calls):
    emitted, site = [], CallSite()
    for number in numbers:
        site.causes.append((NUMBER if site.causes else TRACED, given([number])))
        tracing_to(emitted).report(site, (number,), OTHER)
    assert [each.calls for each in emitted] == ([calls] if calls else [])


@pytest.mark.slow
@pytest.mark.parametrize(
    "numbers, passes, calls",
    [
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], range(1, 7), 3),
        ([0.1, 0.2, 0.3], [2, 6, 10], 3),
        ([0.1, 0.2, 0.3], [1, 2, 4], 0),
        ([0.1, 0.2, 0.3, 0.4], [1, 31, 61, 91], 0),
        ([0.1, 0.2], [1, 2], 0),
        ([1, 2, 3, 4, 5, 6], range(1, 7), 5),
        ([1, 2, 3, 4], range(1, 5), 0),
    ],
    ids=["fractions", "with evaluation", "irregular", "stages", "two", "whole", "few whole"],
)
def test_a_number_that_is_new_in_each_pass(numbers, passes, calls):
    """Each number is used for several calls, of which the first traces."""
    emitted, site = [], CallSite(is_reused=True)
    for number, begun in zip(numbers, passes):
        site.causes.append((NUMBER if site.causes else TRACED, given([number])))
        site.passes.append(begun)
        tracing_to(emitted).report(site, (number,), OTHER)
    assert [each.calls for each in emitted] == ([calls] if calls else [])


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
