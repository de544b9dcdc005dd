"""The line that the examiner blames for fm06."""

import pytest
from recorded import modes, run, stack
from strategy_clinic.observer.events import ExceptionRaised

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


def make_model(units=8):
    return build(units)
"""


@pytest.mark.parametrize(
    "line, blamed",
    [(4, 3), (5, 2), (6, 6), (7, 7), (9, 9), (11, 17), (12, 17), (14, 14)],
    ids=[
        "the model that was built for it",
        "the number that was written down",
        "no number",
        "a model of no name",
        "a number that was computed",
        "a function that builds it with a number by default",
        "the same, and the model is given to a function",
        "a function of another file",
    ],
)
def test_weights_of_another_architecture(tmp_path, line, blamed):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    assert modes(run(ExceptionRaised(stack(path, line), "ValueError", TEXT, ()))) == [
        ("fm06", blamed)
    ]
