"""The programs that the examiner is measured by, with their faults, and how it does on their recorded runs.

Rules may be written after the programs in tests/programs/read. Nobody who writes rules reads those in tests/programs/aside:
only their scores are known, which say how the examiner does on programs that no rule was written for.
"""

import functools
import re
import tomllib
from pathlib import Path

import pytest
import score_folder
from conftest import ROOT
from strategy_clinic.examiner.runs.plan import WITHDRAWN

PROGRAMS = Path(__file__).with_name("programs")
SCORES = PROGRAMS / "scores.toml"
SETS = "read", "aside"
LONG = 200  # lines


@functools.cache
def scores(name):
    """Returns the scores of a set, of whose programs all runs are recorded."""
    chosen = score_folder.variants(PROGRAMS / name)
    return list(score_folder.scores_of(chosen, score_folder.RECORDINGS / name, "replay", 1))


def lines_of(variant):
    files = [path for path in variant.folder.rglob("*") if path.suffix in (".py", ".ipynb")]
    return sum(len(score_folder.lines_of(path)) for path in files)


@pytest.mark.parametrize("name", SETS)
def test_they_fit(name):
    assert score_folder.problems(PROGRAMS / name) == []


def test_there_are_enough():
    found = [each for name in SETS for each in score_folder.variants(PROGRAMS / name)]
    correct = [each for each in found if not each.fault]
    faults = [each.fault for each in found if each.fault]
    assert len(correct) >= 60 and len(faults) >= 240
    assert sum(fault.restart for fault in faults) >= 75
    assert sum(lines_of(each) > LONG for each in correct) >= 20
    assert len({mode for fault in faults for mode in fault.mode}) >= 30


def test_the_page_about_the_examiner_begins_with_the_scores_of_the_programs_aside():
    told = tomllib.loads(SCORES.read_text())["aside"]
    shares = re.findall(r"(\d+ of \d+)[^;]*\((\d+ to \d+ %)\)", told)
    page = (ROOT / "book" / "explanation" / "examiner.md").read_text()
    begin = " ".join(page.split("\n\n")[1].split())
    assert len(shares) == 4
    assert [each for share in shares for each in share if each not in begin] == []


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("name", SETS)
def test_runs_show_every_fault_and_nothing_in_correct_programs(name):
    assert score_folder.verified(scores(name)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_no_finding_that_was_told_early_is_withdrawn(name):
    words = WITHDRAWN.rpartition("}")[2]
    assert [each.variant.name for each in scores(name) if words in "".join(each.notes)] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_the_scores_are_those_that_are_told(name):
    """After a change, tools/score_folder.py prints the line for scores.toml."""
    assert score_folder.totals(scores(name)) == tomllib.loads(SCORES.read_text())[name]
