"""Negative controls: a page whose failure, fix or exercise is not as declared is not rendered."""

import pytest
from conftest import changed, without_table
from strategy_clinic.base.errors import UserError
from strategy_clinic.rendering import render, sources
from thorough import mostly_thorough

pytestmark = pytest.mark.slow

WRONG, RAISES = "fm23", "fm31"


def replaced_by(subject: str, other: str):
    """A control that gives one program of a mode the text of another."""

    def control(folder):
        (folder / f"{subject}.py").write_text((folder / f"{other}.py").read_text())

    control.__name__ = f"{subject} is {other}"
    return control


def another_failure(folder):
    changed(folder / "broken.py", "import tensorflow as tf\n", "import tensorflow as tf\n\n1 / 0\n")


def sentence_refuted(folder):
    """What a page says of its own accord stands in a cell with tests."""
    changed(
        folder / "page.py",
        'assigned(two, "NONE") == [1.0, 2.0]',
        'assigned(two, "NONE") == [1.0, 1.0]',
    )


def step_left_out(folder):
    changed(folder / "page.py", "# exercise.py\n", "pass\n")


shows_nothing = replaced_by("broken", "fixed")
CONTROLS = {
    shows_nothing: "at 'broken'",
    replaced_by("fixed", "broken"): "at 'fixed'",
    replaced_by("exercise", "solution"): "green before",
    replaced_by("solution", "exercise"): "at 'solution'",
    another_failure: "at 'broken'",
    sentence_refuted: "AssertionError",
    step_left_out: "not whole",
}
USUAL = shows_nothing, sentence_refuted
OF_A_LOUD_ONE = [shows_nothing, another_failure]


def refused(mode: str, control, says: str):
    page = sources.sources([mode])[0]
    stored = sources.notebook_path(page).read_bytes()
    control(page.parent)
    page.write_text(without_table(page.read_text()))  # no control concerns it
    with pytest.raises(UserError, match=says):
        render.render_all([mode])
    assert sources.notebook_path(page).read_bytes() == stored


@pytest.mark.parametrize(
    "control", mostly_thorough(CONTROLS, *USUAL), ids=lambda control: control.__name__
)
def test_a_page_is_refused(project, control):
    refused(WRONG, control, CONTROLS[control])


@pytest.mark.parametrize("control", OF_A_LOUD_ONE, ids=lambda control: control.__name__)
def test_a_page_whose_program_raises_is_refused(project, control):
    refused(RAISES, control, "at 'broken'")
