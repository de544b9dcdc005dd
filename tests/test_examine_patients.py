"""The clinic's own modes, examined as programs of their own: the score, which may rise and may not fall.

The silent modes and a loud one run here, under one setup on Keras 3. `clinic examine --benchmark --keras 2,3` runs all, and keeps
the score in a file: what is kept is held to the goals here, and to the examiner as it is.
"""

import ast
import json
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT
from strategy_clinic.base.errors import UserError
from strategy_clinic.examiner.benchmark import programs, score
from strategy_clinic.examiner.rules import findings

SCORED = [
    "fm01",
    "fm05",
    "fm09",
    "fm19",
    "fm21",
    "fm23",
    "fm25",
    "fm26",
    "fm29",
    "fm35",
    "fm37",
    "fm38",
]
KEPT = score.kept_score()
MOST_MISSED, MOST_OFF_THE_LINE = 2, 4  # of all modes
# What no run shows, and why: a program that means it and one that does not do the same.
UNSEEN = {"fm14": "two layers of one shape may be meant to be two"}


SOURCES = programs.patient_sources()


@pytest.mark.parametrize("mode", SOURCES)
def test_patients_are_programs_with_their_lines(mode):
    text = SOURCES[mode].read_text().splitlines()
    for patient in programs.patients_of(SOURCES[mode], 3):
        ast.parse(patient.text)
        assert "helpers import" not in patient.text and "clinic." not in patient.text
        assert patient.subject == "broken" or "# guilty" not in patient.text
        assert "# guilty" in text[patient.guilty - 1]


# The score that is kept


@pytest.mark.parametrize("keras", ["keras 2", "keras 3"])
def test_the_score_is_that_of_the_examiner_as_it_is(keras):
    mend = "clinic examine --keras 2,3 --benchmark"
    assert KEPT[keras]["examiner"] == score.examiner_now(), f"the examiner has changed: {mend}"


@pytest.mark.parametrize("keras", ["keras 2", "keras 3"])
def test_only_what_no_run_shows_is_missed(keras):
    kept = KEPT[keras]
    assert {mode for mode, word in kept["sick"].items() if word == "missed"} == set(UNSEEN)
    assert kept["not healthy"] == {}


@pytest.mark.parametrize("keras", ["keras 2", "keras 3"])
def test_the_readme_has_the_score(keras):
    assert f"\n{keras.title()}: {KEPT[keras]['total']}\n" in (ROOT / "README.md").read_text()


def test_the_score_reaches_its_goals():
    words = list(KEPT["keras 3"]["sick"].values())
    assert len(words) == len(SOURCES)
    assert words.count("missed") <= MOST_MISSED
    assert len(words) - words.count("on the line") <= MOST_OFF_THE_LINE


def test_the_judges_are_all_modules_that_come_with_patients():
    """Asked of another process, since this one has loaded everything."""
    code = "import sys, strategy_clinic.examiner.benchmark.programs; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = [
        name.split(".", 1)[1]
        for name in told.stdout.split()
        if name.startswith("strategy_clinic.examine.")
    ]
    loaded = {name.replace(".", "/") for name in names}
    judges = {name.removesuffix(".py").removesuffix("/__init__") for name in score.JUDGES}
    assert loaded - {"examine/patients"} == judges


def test_a_change_of_a_rule_makes_the_score_old(tmp_path, monkeypatch):
    before = score.examiner_now()
    copy = shutil.copytree(
        score.PACKAGE, tmp_path / "helpers", ignore=shutil.ignore_patterns("__pycache__")
    )
    monkeypatch.setattr(score, "PACKAGE", copy)
    rule = copy / "examine/rules/silent.py"
    rule.write_text(rule.read_text() + "# a comment\n")
    assert score.examiner_now() == before
    rule.write_text(rule.read_text().replace("1e-5", "1e-4"))
    assert score.examiner_now() != before


def test_a_score_is_kept_by_keras(tmp_path, monkeypatch):
    monkeypatch.setattr(score, "SCORE_FILE", tmp_path / "score.json")
    broken, fixed, _ = programs.chosen_patients(["fm05"], 3)
    score.keep_score(3, [score.Score(broken, (), "finished"), score.Score(fixed, (), "raised")])
    score.keep_score(2, [])
    told = json.loads(score.SCORE_FILE.read_text())
    assert told["keras 3"]["sick"] == {"fm05": "missed"}
    assert told["keras 3"]["not healthy"] == {"fm05 fixed": "FAILED"}
    assert told["keras 2"]["sick"] == {}


# The score of some, as it is now


@pytest.fixture(scope="module")
def scores():
    chosen = [each for each in programs.chosen_patients(SCORED, 3) if each.subject != "solved"]
    return [score.score_of(each, programs.examine_patient(each)) for each in chosen]


@pytest.mark.slow
def test_every_sick_one_is_named_on_its_line_and_no_healthy_one(scores):
    words = [each.word for each in scores]
    assert words == ["on the line", "healthy"] * len(SCORED), list(map(score.score_line, scores))


@pytest.mark.slow
def test_the_observer_knows_all_that_it_meets(scores):
    assert [score.score_line(each) for each in scores if each.troubles] == []


@pytest.mark.slow
def test_without_its_rule_a_mode_is_missed(monkeypatch):
    """The score can fall."""
    monkeypatch.delitem(findings.RULES, "fm23")
    (sick,) = [each for each in programs.chosen_patients(["fm23"], 3) if each.sick]
    assert score.score_of(sick, programs.examine_patient(sick)).word == "missed"


def scored(patient, mode="fm05", line=0, ended="finished"):
    finding = score.Finding(mode, (["train.py", line, "main"],), "", "")
    return score.Score(patient, (finding,) if mode else (), ended)


def test_a_total_counts_what_is_named_on_the_line_accused_and_failed():
    broken, fixed, solved = programs.chosen_patients(["fm05"], 3)
    found = [scored(broken, line=broken.guilty), scored(fixed), scored(solved, "", ended="raised")]
    assert [each.word for each in found] == ["on the line", "ACCUSED", "FAILED"]
    told = "1 of 1 named, 1 on the line; 1 of 2 healthy accused, 1 failed"
    assert score.score_totals(found) == told
    assert score.score_totals([*found, scored(broken, "", ended="unavailable")]) == told
    assert [scored(broken).word, scored(broken, "fm09").word] == ["named", "missed"]
    assert scored(fixed, ended="raised").word == "FAILED"  # whatever its failure is called


def test_a_patient_under_another_strategy():
    setups = {
        name: programs.chosen_patients(["fm26"], 3, name)[0].setup
        for name in ("default", "mirrored", "tpu_traced")
    }
    assert [each.devices for each in setups.values()] == [1, 4, 8]
    with pytest.raises(UserError, match="none for one process"):
        programs.chosen_patients(["fm26"], 3, "multi_worker")
