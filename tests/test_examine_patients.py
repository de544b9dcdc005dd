"""The clinic's own modes, examined as programs of their own: the score, which may rise and may not fall.

Silent modes and one loud one run here; `clinic examine --patients` runs all of them, on both generations of Keras.
"""

import ast

import pytest

from helpers.examine import patients, rules

SCORED = ("fm01", "fm03", "fm09", "fm21", "fm23", "fm25", "fm29", "fm35", "fm37", "fm38")


SOURCES = patients.patient_sources()


@pytest.mark.parametrize("mode", SOURCES)
def test_patients_are_programs_with_their_lines(mode):
    text = SOURCES[mode].read_text().splitlines()
    for patient in patients.patients_of(SOURCES[mode], 3):
        ast.parse(patient.text)
        assert "helpers import" not in patient.text and "clinic." not in patient.text
        assert patient.subject == "broken" or "# guilty" not in patient.text
        assert "# guilty" in text[patient.guilty - 1]


@pytest.fixture(scope="module")
def scores():
    chosen = patients.chosen_patients(list(SCORED), 3)
    return {(each.mode, each.subject): patients.examine_patient(each) for each in chosen}


@pytest.mark.slow
def test_every_sick_one_is_named(scores):
    sick = {mode: each for (mode, _), each in scores.items() if each.patient.sick}
    assert [mode for mode, each in sick.items() if not each.named] == []
    assert len(sick) == len(SCORED)


@pytest.mark.slow
def test_no_healthy_one_is_accused(scores):
    assert [patients.score_line(each) for each in scores.values() if each.accused] == []


@pytest.mark.slow
def test_the_observer_knows_all_that_it_meets(scores):
    assert {key: each.troubles for key, each in scores.items() if each.troubles} == {}


@pytest.mark.slow
def test_without_its_rule_a_mode_is_missed(monkeypatch):
    """The score can fall."""
    monkeypatch.delitem(rules.RULES, "fm23")
    sick = [each for each in patients.chosen_patients(["fm23"], 3) if each.sick]
    assert [patients.examine_patient(each).named for each in sick] == [False]


def test_a_total_counts_what_is_named_on_the_line_and_accused():
    broken, fixed, _ = patients.chosen_patients(["fm05"], 3)
    finding = patients.Finding("fm05", (["train.py", broken.guilty, "main"],), "", "")
    scored = [patients.Score(each, (finding,), "finished") for each in (broken, fixed)]
    assert patients.score_totals(scored) == "1 of 1 named, 1 on the line; 1 of 1 healthy accused"
    assert "ACCUSED" in patients.score_line(scored[1])
