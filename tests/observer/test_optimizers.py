"""What the observer takes for an optimizer that trains the same variables."""

import contextlib
from types import SimpleNamespace

import pytest
from strategy_clinic.observer import optimizers
from strategy_clinic.observer.optimizers import has_slots_for


def variables(*shapes):
    return [SimpleNamespace(shape=shape) for shape in shapes]


HEAD, BODY = [(3, 2), (2,)], [(4, 3), (3,)]


@pytest.mark.parametrize(
    "slots, trained, expected",
    [
        ([(), (), *HEAD], HEAD, True),
        ([(), *HEAD, *HEAD], HEAD, True),
        ([(), *HEAD], HEAD + BODY, False),
        ([(), *HEAD], HEAD + HEAD, False),
        ([(), *HEAD, *BODY, *HEAD, *BODY], HEAD, False),
        ([(), *HEAD, *BODY], [], False),
        ([(), ()], HEAD, True),
    ],
    ids=[
        "one slot each",
        "two",
        "of a part",
        "of one of two that are alike",
        "of more",
        "of nothing",
        "none yet",
    ],
)
def test_the_slots_that_an_optimizer_has(slots, trained, expected):
    assert has_slots_for(variables(*slots), variables(*trained)) is expected


def test_an_optimizer_that_was_used_is_not_kept(monkeypatch):
    monkeypatch.setattr(
        optimizers, "outside_graphs", contextlib.nullcontext
    )  # which TensorFlow has

    class Optimizer:
        iterations = "a variable"

    optimizer = Optimizer()
    used = optimizers.Used(optimizer)
    del optimizer
    assert used.reference() is None
    assert (used.kind, used.iterations) == ("Optimizer", "a variable")
