"""A handout for nbgrader: its metadata, and, where nbgrader is installed, what it grades. `make nbgrader` installs it."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from strategy_clinic import cli
from strategy_clinic.modes import registry
from strategy_clinic.rendering import sources
from strategy_clinic.workshop import nbgrader
from workshop import SMALL, cell, notebook

# What nbgrader's schema of version 3 requires and allows, by the type of the value.
REQUIRED = {"schema_version": int, "grade": bool, "locked": bool, "solution": bool}
ALLOWED = REQUIRED | {"task": bool, "grade_id": str, "points": int}


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("course") / "out"
    assert cli.main(["handout", str(folder), "--nbgrader"]) == 0
    return folder / nbgrader.COURSE


def problems(path: Path) -> list[str]:
    """What nbgrader would refuse, or would not restore before it grades."""
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    marked = {each.id: dict(each.metadata["nbgrader"]) for each in book.cells if is_marked(each)}
    ids = [each.get("grade_id", "") for each in marked.values()]
    found = [f"grade_id {each!r}" for each in ids if not re.fullmatch(r"[\w-]+", each)]
    found += ["two cells have one grade_id"] if len(set(ids)) < len(ids) else []
    for each in marked.values():
        kinds = {name: type(value) for name, value in each.items()}
        wrong = REQUIRED.items() - kinds.items() | kinds.items() - ALLOWED.items()
        found += [f"{each}: {sorted(name for name, _ in wrong)}"] if wrong else []
        found += [f"{each}: points"] if each.get("grade") != ("points" in each) else []
        found += [f"{each}: not locked"] if not each.get("locked") or each.get("solution") else []
    return found


def is_marked(each) -> bool:
    return "nbgrader" in each.metadata


@pytest.mark.slow
def test_every_exercise_has_a_cell_that_nbgrader_can_grade(course):
    names = {Path(mode.notebook).name for mode in registry.modes()}
    given = {path.name: path for path in (course / nbgrader.SOURCE).iterdir()}
    assert set(given) == names | {"00_start_here.ipynb"} and not (course / "notebooks").exists()
    for name, path in given.items():
        assert problems(path) == []
        cells = nbformat.read(path, as_version=4).cells
        points = [each for each in cells if each.metadata.get("nbgrader", {}).get("points")]
        assert [each.source for each in points] == [nbgrader.GRADED] * (name in names)
        if points:
            exercise = cells[cells.index(points[0]) - 1]
            assert exercise.source.startswith("%%program exercise") and not is_marked(exercise)


@pytest.mark.parametrize(
    "field, value",
    [
        ("points", "1"),
        ("grade_id", "parameters"),
        ("grade_id", "a b"),
        ("locked", False),
        ("schema_version", "3"),
        ("checked", True),
    ],
)
def test_metadata_that_nbgrader_refuses_is_noticed(course, tmp_path, field, value):
    book = nbformat.read(course / nbgrader.SOURCE / SMALL, as_version=4)
    book.cells[-1].metadata["nbgrader"] = nbgrader.metadata("exercise") | {field: value}
    (graded,) = [each for each in book.cells if each.id == "graded"]
    graded.metadata["nbgrader"][field] = value
    nbformat.write(book, tmp_path / SMALL)
    assert problems(tmp_path / SMALL)


# nbgrader itself

SOLUTION = cell(notebook(SMALL), "solution").source.replace("solution", "exercise", 1)


def no_change(book):
    pass


def solved(book):
    cell(book, "exercise").source = SOLUTION


def another_setup(book):
    """Participants cannot change the setup; under this one the exercise is refused before it runs."""
    solved(book)
    cell(
        book, "parameters"
    ).source = 'strategy = "default"\ndevices = 1\nsave_format = "keras"\nkeras = 3'


def another_grade(book):
    next(each for each in book.cells if each.id == "graded").source = "pass"


def another_grader(book):
    """A cell of a participant is not run: it could change what the graded cell says."""
    cell(book, "figure").source = "type(session).grade_exercise = lambda self: None"


POINTS = {no_change: 0.0, solved: 1.0, another_setup: 1.0, another_grade: 0.0, another_grader: 0.0}


@pytest.mark.parametrize(
    "text, runs",
    [
        (nbgrader.GRADED, True),
        (f"{nbgrader.GRADED}\n", True),
        (f"{nbgrader.GRADED}\nimport os", False),
        ("%%program exercise\nimport tensorflow as tf", True),
        ("%%program fixed\nimport tensorflow as tf", False),
        ("session.panel()", False),
        ("", False),
    ],
)
def test_only_what_is_graded_runs_while_nbgrader_grades(text, runs):
    lines = text.splitlines(keepends=True)
    assert nbgrader.only_graded(lines) == (lines if runs else ["pass\n"])


def test_other_stages_of_nbgrader_leave_a_notebook_alone():
    nbgrader.prepare(None, None, "validate")


def run_nbgrader(course: Path, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *words],
        cwd=course,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_nbgrader_gives_points_for_the_solution_only(tmp_path):
    pytest.importorskip("nbgrader", reason="nbgrader is not installed; run: make nbgrader")
    assert cli.main(["handout", str(tmp_path), "fm17", "--nbgrader"]) == 0
    course = tmp_path / nbgrader.COURSE
    (course / nbgrader.SOURCE / "00_start_here.ipynb").unlink()  # has no exercise
    run_nbgrader(course, "generate_assignment", nbgrader.ASSIGNMENT)
    released = course / "release" / nbgrader.ASSIGNMENT / SMALL
    for change in POINTS:
        book = nbformat.read(released, as_version=4)
        change(book)
        place = course / "submitted" / change.__name__ / nbgrader.ASSIGNMENT
        place.mkdir(parents=True)
        nbformat.write(book, place / SMALL)
    run_nbgrader(course, "autograde", nbgrader.ASSIGNMENT)
    run_nbgrader(course, "export")
    with open(course / "grades.csv") as file:
        graded = {row["student_id"]: row for row in csv.DictReader(file)}
    assert {name: float(row["score"]) for name, row in graded.items()} == {
        change.__name__: points for change, points in POINTS.items()
    }
    assert {float(row["max_score"]) for row in graded.values()} == {1.0}
    assert executed_tags(course / "autograded" / "solved" / nbgrader.ASSIGNMENT / SMALL) == {"open"}


def executed_tags(path: Path) -> set[str]:
    """The tags of the cells that have an output after grading, but for the exercise's and what is graded."""
    cells = nbformat.read(path, as_version=4).cells
    return {tag for each in cells if each.get("outputs") for tag in sources.tags(each)}
