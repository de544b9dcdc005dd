"""The examiner's rule for fm06, and the line that it blames for an exception."""

from dataclasses import replace

import pytest
from recorded import LINE, OTHER, found, loaded, modes, run, stack, updated, written
from strategy_clinic.observer.events import ExceptionRaised, ModelCalled, Outcome, VariablesKept

TEXT = "ValueError: Weight expects shape (3, 8). Received saved weight with shape (3, 4)"
PROGRAM = """\
def main(path):
    units = 8
    model = build(9)
    model.load_weights(path)
    load(path, units)
    load(path, make())
    self.inner.load_weights(path)
    size = count()
    load(size)
    model = make_model()
    model.load_weights(path)
    load(path, model)
    loaded = load_model()
    load(path, loaded)
    model = make_model(9)
    model.load_weights(path)


def make_model(units=8):
    return build(units)
"""


@pytest.mark.parametrize(
    "line, blamed",
    [(4, 3), (5, 2), (6, 6), (7, 7), (9, 9), (11, 19), (12, 19), (14, 14), (16, 15)],
    ids=[
        "the model that was built for it",
        "the number that was written down",
        "no number",
        "a model of no name",
        "a number that was computed",
        "a function that builds it with a number by default",
        "the same, and the model is given to a function",
        "a function of another file",
        "a number that the function is given",
    ],
)
def test_weights_of_another_architecture(tmp_path, line, blamed):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    assert modes(run(ExceptionRaised(stack(path, line), "ValueError", TEXT, ()))) == [
        ("fm06", blamed)
    ]


# A value of another shape that is not from a file

SHAPES = (
    "ValueError: Cannot assign value to variable ' correct:0': Shape mismatch."
    "The variable shape (3,), and the assigned value shape () are incompatible."
)


@pytest.mark.parametrize(
    "events, named",
    [
        ([ModelCalled(LINE, 8, 1, (1,))], []),
        ([ModelCalled(LINE, 8, 1, (1,)), loaded()], [("fm06", 7)]),
        ([ModelCalled(OTHER, 8, 1, (1,))], [("fm06", 7)]),
        ([], [("fm06", 7)]),
    ],
    ids=["a line that trains", "after a load", "another line", "nothing was trained"],
)
def test_a_value_of_another_shape(events, named):
    assert modes(run(*events, ExceptionRaised(LINE, "ValueError", SHAPES, ()))) == named


def test_a_value_of_another_shape_before_the_first_step_of_fit(tmp_path):
    """Keras 2 sets the variables of a metric to 0 when an epoch begins; nothing was called yet."""
    path = tmp_path / "train.py"
    path.write_text("model.fit(data)\nmodel.set_weights(data)\n")
    for line, named in ((1, []), (2, [("fm06", 2)])):
        raised = ExceptionRaised(stack(path, line), "ValueError", SHAPES, ())
        assert modes(run(raised)) == named


# A load that fills a part of a model

KEPT = VariablesKept(LINE, "restore", "ck-1", (1, 2), (1, 2), 0, other_output=False, skipped=False)
SKIPPED = replace(KEPT, function="load_weights", fitting=(), filled=1, skipped=True)
CALLED = ModelCalled(OTHER, 8, 1, (1, 2))
TRAINED = updated(trains=(1, 2))


@pytest.mark.parametrize(
    "events",
    [
        [KEPT],
        [KEPT, TRAINED],
        [replace(KEPT, filled=2), TRAINED],
        [replace(KEPT, filled=2, skipped=True)],
        [SKIPPED, CALLED, TRAINED],
        [replace(SKIPPED, other_output=True), CALLED],
    ],
    ids=[
        "all of it is kept",
        "and then trained from there",
        "a part is kept",
        "a part is kept on purpose, and used",
        "another shape is skipped, with the same output",
        "another output is skipped, and never trained",
    ],
)
def test_a_load_that_fills_a_part(events):
    (finding,) = found(run(*events))
    assert (finding.mode, finding.line) == ("fm06", 7)
    assert "2 variables kept their values when this was loaded" in str(finding.message)
    fits = bool(events[0].fitting)
    assert ("values of their shapes, which no variable got" in str(finding.proof)) is fits
    assert ("the file has other shapes for them" in str(finding.proof)) is not fits


@pytest.mark.parametrize(
    "events",
    [
        [replace(KEPT, filled=2, skipped=True), TRAINED],
        [replace(SKIPPED, other_output=True), CALLED, TRAINED],
        [SKIPPED],
        [
            replace(SKIPPED, other_output=True),
            CALLED,
            ExceptionRaised(LINE, "OSError", "no data", ()),
        ],
        [replace(SKIPPED, skipped=False), CALLED],
        [KEPT, written(number=1)],
        [KEPT, loaded(variables=(1, 2))],
        [replace(KEPT, location=())],
    ],
    ids=[
        "a head of another task, which is trained",
        "a head with another number of classes, which is trained",
        "not used",
        "a program that raises before it trains the head",
        "the file has nothing for it",
        "set by the program",
        "loaded from another file",
        "on no line",
    ],
)
def test_a_load_that_rightly_fills_a_part(events):
    raises = isinstance(events[-1], ExceptionRaised)
    assert modes(run(*events, outcome=Outcome.RAISED if raises else Outcome.FINISHED)) == []


def test_a_restore_that_says_that_it_is_partial(tmp_path):
    (tmp_path / "train.py").write_text("checkpoint.restore(path).expect_partial()\n")
    kept = replace(KEPT, location=stack(tmp_path / "train.py", 1))
    assert modes(run(replace(kept, filled=2), TRAINED)) == []
    assert modes(run(kept, TRAINED)) == [("fm06", 1)]  # it only hides the warnings
