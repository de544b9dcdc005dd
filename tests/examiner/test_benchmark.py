"""The benchmark: its programs, how they are scored, and the score of some of them. `clinic examine --benchmark` runs all."""

import ast
import symtable
from pathlib import Path

import pytest
from recorded import LINE, run
from strategy_clinic.base import files
from strategy_clinic.base.errors import UserError
from strategy_clinic.examiner import rule
from strategy_clinic.examiner.benchmark import programs, score
from strategy_clinic.examiner.findings import Evidence, Examination, Finding, Location, Text
from strategy_clinic.observer.events import ExceptionRaised, Frame, ObserverFailed, Outcome

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
SOURCES = files.mode_pages()
STAND_IN = Path(programs.__file__).with_name("stand_in.py")


@pytest.mark.parametrize("mode", SOURCES)
def test_programs_have_the_lines_of_their_page(mode):
    page = SOURCES[mode].read_text().splitlines()
    for program in programs.programs_of(SOURCES[mode], 3):
        ast.parse(program.text)
        assert "strategy_clinic import" not in program.text
        assert "clinic." not in program.text.replace("strategy_clinic.", "")
        assert program.subject == "broken" or "# guilty" not in program.text
        assert "# guilty" in page[program.guilty - 1]
        if program.subject == "broken":
            assert program.text.splitlines()[program.guilty - 1] == page[program.guilty - 1]


def test_programs_under_another_strategy():
    setups = {
        name: programs.benchmark_programs(["fm26"], 3, name)[0].setup
        for name in ("default", "mirrored", "tpu_traced")
    }
    assert [setup.devices for setup in setups.values()] == [1, 4, 8]
    with pytest.raises(UserError, match="none for one process"):
        programs.benchmark_programs(["fm26"], 3, "multi_worker")


def imported(text, module):
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in nodes if node.module == module for alias in node.names}


def test_what_stands_in_for_the_package_has_what_programs_import():
    """Any other name is a function that does nothing: of a declaration, or of a table for the page."""
    used = {
        name
        for page in SOURCES.values()
        for program in programs.programs_of(page, 3)
        for name in imported(program.text, programs.STAND_IN)
    }
    symbols = symtable.symtable(STAND_IN.read_text(), STAND_IN.name, "exec")
    missing = used - set(symbols.get_identifiers())
    assert missing <= {"Claim", "FailureMode", "Symptom", "text_table"}


# How they are scored


def scored(program, mode="fm05", line=0, outcome=Outcome.FINISHED, **fields):
    location = Location((Frame("train.py", line, "main"),))
    finding = Finding(mode, location, Evidence.OBSERVED, Text(), Text())
    return score.Score(program, (finding,) if mode else (), outcome, **fields)


BROKEN, FIXED, SOLVED = programs.benchmark_programs(["fm05"], 3)


@pytest.mark.parametrize(
    "result, word",
    [
        (scored(BROKEN, line=BROKEN.guilty), "on the line"),
        (scored(BROKEN), "named"),
        (scored(BROKEN, "fm09"), "missed"),
        (scored(BROKEN, ""), "missed"),
        (scored(BROKEN, "", available=False), "unavailable"),
        (scored(FIXED), "FALSE POSITIVE"),
        (scored(FIXED, ""), "correct"),
        (scored(FIXED, outcome=Outcome.RAISED), "FAILED"),  # whatever its failure is called
        (scored(FIXED, "", outcome=Outcome.HANGS), "FAILED"),
    ],
)
def test_the_word_for_a_score(result, word):
    assert result.word == word
    assert word in str(result)


def test_only_a_mode_that_says_why_no_run_shows_it_may_be_missed():
    broken = programs.benchmark_programs(["fm14"], 3)[0]
    assert scored(broken, "").word == "undetectable"
    assert scored(broken, "", available=False).word == "unavailable"
    assert list(rule.mode_rules().undetectable) == ["fm14"]


def test_totals():
    scores = [
        scored(BROKEN, line=BROKEN.guilty),
        scored(BROKEN),
        scored(BROKEN, ""),
        scored(FIXED),
        scored(SOLVED, "", outcome=Outcome.RAISED),
        scored(SOLVED, "", available=False),
    ]
    said = "2 of 3 named, 1 on the line; 1 false positives in 2 correct programs, 1 failed"
    assert score.totals(scores) == said


def test_a_score_tells_what_the_observer_could_not_see():
    raised = ExceptionRaised(LINE, "Unavailable", "Unavailable: no TPU", ())
    recording = run(ObserverFailed("was_read", "KeyError: 1"), raised, outcome=Outcome.RAISED)
    result = score.score_of(BROKEN, Examination("program", [recording]))
    assert (result.word, result.failures) == ("unavailable", ("was_read: KeyError: 1",))
    assert "OBSERVER FAILED was_read: KeyError: 1" in str(result)


@pytest.mark.parametrize(
    "outcome, line, status",
    [("finds", BROKEN.guilty, 0), ("finds", 1, 0), ("misses", 0, 1), ("accuses", 0, 1)],
)
def test_the_exit_status_of_a_run(outcome, line, status, monkeypatch, capsys):
    def examined(program):
        location = Location((Frame("train.py", line, "main"),))
        finding = Finding("fm05", location, Evidence.OBSERVED, Text(), Text())
        told = program.is_broken if outcome == "finds" else outcome == "accuses"
        return Examination("program", [run()], [finding] if told else [])

    monkeypatch.setattr(score, "examine_benchmark_program", examined)
    assert score.run_benchmark(["fm05"], [3], []) == status
    assert capsys.readouterr().out.splitlines()[-1].startswith("Keras 3: ")


def test_a_mode_or_a_keras_that_is_none():
    with pytest.raises(UserError, match="mode = 'fm99'"):
        score.run_benchmark(["fm99"], [3], [])
    with pytest.raises(UserError, match="keras = 4"):
        score.run_benchmark([], [4], [])


# The score of some, in processes


@pytest.fixture(scope="module")
def scores():
    chosen = programs.benchmark_programs(SCORED, 3)
    chosen = [program for program in chosen if program.subject != "solved"]
    examined = [(program, programs.examine_benchmark_program(program)) for program in chosen]
    return [score.score_of(program, examination) for program, examination in examined]


@pytest.mark.slow
def test_every_broken_program_is_named_on_its_line_and_no_correct_one(scores):
    words = [result.word for result in scores]
    assert words == ["on the line", "correct"] * len(SCORED), list(map(str, scores))


@pytest.mark.slow
def test_the_observer_knows_all_that_it_meets(scores):
    assert [str(result) for result in scores if result.failures] == []


@pytest.mark.slow
def test_without_its_rule_a_mode_is_missed(monkeypatch):
    """The score can fall."""
    known = rule.mode_rules()
    rules = [each for each in known.rules if each.mode != "fm23"]
    without = rule.ModeRules(rules, known.blame, known.reclassifications, known.undetectable)
    monkeypatch.setattr(rule, "mode_rules", lambda: without)
    (broken,) = [each for each in programs.benchmark_programs(["fm23"], 3) if each.is_broken]
    examination = programs.examine_benchmark_program(broken)
    assert score.score_of(broken, examination).word == "missed"
