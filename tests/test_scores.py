"""The table of a class, and how long grading it takes."""

import csv

import pytest
from strategy_clinic.workshop.remaining import Remaining
from strategy_clinic.workshop.scores import Grade, participant_of, rows, write_csv

NAMES = {
    ("anna/notebooks/fm37_loss_scaled_per_replica.ipynb", "fm37"): "anna",
    ("anna/fm37.ipynb", "fm37"): "anna",
    ("anna_fm37_loss_scaled_per_replica.ipynb", "fm37"): "anna",
    ("fm37_loss_scaled_per_replica Ben O'Neil.ipynb", "fm37"): "Ben O'Neil",
    ("fm37_loss_scaled_per_replica (1).ipynb", "fm37"): "1",
    ("fm37_loss_scaled_per_replica.ipynb", "fm37"): "(no name)",
    ("fm37_loss_scaled_per_replica_carla.ipynb", "fm37"): "carla",
    ("fm77_unknown.ipynb", "fm77"): "unknown",
    ("mine.ipynb", "fm37"): "mine",
}


@pytest.mark.parametrize("name, mode", NAMES)
def test_a_participant_is_known_by_the_folder_or_the_file(name, mode):
    assert participant_of(name, mode) == NAMES[name, mode]


def grades(*results: tuple[str, str, str]) -> list[Grade]:
    return [Grade(f"{who}/{mode}.ipynb", who, mode, result, "") for who, mode, result in results]


CLASS = grades(
    ("ben", "fm37", "red"),
    ("anna", "fm39", "green"),
    ("anna", "fm37", "to read"),
    ("ben", "fm39", "not run"),
    ("ben", "fm37", "green"),
    ("=cmd()", "fm39", "red"),
)


def test_a_table_has_a_row_for_each_and_the_best_counts():
    assert rows(CLASS) == [
        ["participant", "fm37", "fm39", "points"],
        ["=cmd()", "", "0", "0"],
        ["anna", "?", "1", "1 to 2"],
        ["ben", "1", "?", "1 to 2"],
    ]


def test_no_name_is_a_formula_in_the_file(tmp_path):
    write_csv(tmp_path / "grades.csv", CLASS)
    with open(tmp_path / "grades.csv") as file:
        names = [row["participant"] for row in csv.DictReader(file)]
    assert names == ["'=cmd()", "anna", "ben"]


def test_what_remains_is_said_when_a_pace_is_known():
    times = iter([100.0, 160.0, 340.0])
    remaining = Remaining(30, 2, lambda: next(times))
    assert [remaining.after(done) for done in (0, 1, 2, 4)] == [""] * 4
    assert remaining.after(6) == " (about 5 minutes left)"
    assert remaining.after(30) == ""
    assert remaining.after(29) == " (less than a minute left)"
