"""The examiner's rule for fm13: a list of gradients that is shorter than that of their variables."""

from dataclasses import replace

import pytest
from recorded import LINE, OTHER, found, modes, run, stack, updated, variable
from strategy_clinic.observer.events import ExceptionRaised, GradientComputed, Outcome

WEIGHTS = [variable(1), variable(2)]
COMPUTED = GradientComputed(LINE, missing=1, total=2, disconnected=(1,))
SHIFTED = updated(gradients=1, trains=(1,))


def test_a_gradient_that_another_variable_gets():
    (finding,) = found(run(*WEIGHTS, COMPUTED, SHIFTED))
    assert (finding.mode, finding.line) == ("fm13", 20)
    assert str(finding.message).startswith("v1 has no gradient and gets that of another variable")
    assert "1 of 2 gradients were None at line 7" in str(finding.proof)


@pytest.mark.parametrize(
    "events",
    [
        [COMPUTED, replace(SHIFTED, optimizer=updated(trains=(2,)).optimizer)],
        [COMPUTED, replace(SHIFTED, gradients=2, missing=1)],
        [COMPUTED, replace(SHIFTED, gradients=2)],
        [COMPUTED, GradientComputed(LINE, 1, 2, (2,)), SHIFTED],
        [SHIFTED, COMPUTED],
        [COMPUTED, replace(SHIFTED, location=())],
    ],
    ids=[
        "left out together with its variable",
        "None is applied",
        "zeros in its place",
        "another tape in between",
        "before",
        "no line",
    ],
)
def test_gradients_that_fit_their_variables(events):
    assert modes(run(*WEIGHTS, *events)) == []


PROGRAM = """\
def train():
    gradients = tape.gradient(loss, weights)
    gradients = [each for each in gradients if each is not None]
    optimizer.apply_gradients(zip(gradients, weights))

def inline():
    gradients = tape.gradient(loss, weights)
    optimizer.apply_gradients(zip([g for g in gradients if g is not None], weights))
"""


@pytest.mark.parametrize("line, blamed", [(4, 3), (8, 8)])
def test_the_line_that_shortens_the_list(tmp_path, line, blamed):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    shifted = replace(SHIFTED, location=stack(path, line))
    assert modes(run(*WEIGHTS, COMPUTED, shifted)) == [("fm13", blamed)]


ACCUMULATED = """\
def step(x, y):
    grads = tape.gradient(loss, weights)
    grads = [g for g in grads if g is not None]
    for total, g in zip(sums, grads):
        total.assign_add(g)
"""


def test_other_lines_in_between():
    assert modes(run(*WEIGHTS, COMPUTED, variable(3), updated(OTHER, 1, trains=(1, 3)))) == [
        ("fm13", 20)
    ]


@pytest.mark.parametrize(
    "missing, text, expected",
    [
        (1, "ValueError: None values not supported.", [("fm13", 7)]),
        (
            1,
            "ValueError: Attempt to convert a value (None) with an unsupported type",
            [("fm13", 7)],
        ),
        (1, "ValueError: a value that is unsupported", []),
        (0, "ValueError: None values not supported.", []),
        (2, "ValueError: None values not supported.", []),
    ],
)
def test_an_error_over_a_gradient_that_is_none(missing, text, expected):
    raised = ExceptionRaised(OTHER, "ValueError", f"Traceback\n{text}", ())
    events = GradientComputed(LINE, missing=missing, total=2), raised
    assert modes(run(*events, outcome=Outcome.RAISED)) == expected
