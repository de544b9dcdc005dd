"""The benchmark: its programs, how they are scored, and the score of some of them. `clinic examine --benchmark` runs all."""

import ast
from dataclasses import replace

import pytest
from recorded import LINE, run
from strategy_clinic.base import files
from strategy_clinic.base.errors import UserError
from strategy_clinic.examiner import rule
from strategy_clinic.examiner.benchmark import programs, rates, score
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


@pytest.mark.parametrize("mode", SOURCES)
def test_programs_are_those_of_the_mode_on_as_many_devices_as_there_are(mode):
    for program in programs.programs_of(SOURCES[mode], 3):
        ast.parse(program.text)
        assert bool(program.guilty) == (program.subject == "broken")
        if program.setup.devices > 1 and "strategy = tf.distribute.Mirrored" in program.text:
            assert "tf.config.set_logical_device_configuration(cpu," not in program.text
            assert "strategy = tf.distribute.MirroredStrategy()" in program.text


def test_programs_under_another_strategy():
    setups = {
        name: programs.benchmark_programs(["fm37"], 3, name)[0].setup
        for name in ("default", "mirrored", "tpu_traced")
    }
    assert [setup.devices for setup in setups.values()] == [1, 2, 8]
    with pytest.raises(UserError, match="none for one process"):
        programs.benchmark_programs(["fm37"], 3, "multi_worker")


# How they are scored


def scored(program, mode="fm37", line=0, outcome=Outcome.FINISHED, by_framework=False, **fields):
    location = Location((Frame("train.py", line, "main"),))
    finding = Finding(mode, location, Evidence.OBSERVED, Text(), Text(), by_framework=by_framework)
    return score.Score(program, (finding,) if mode else (), outcome, **fields)


BROKEN, FIXED, SOLVED = programs.benchmark_programs(["fm37"], 3)
WITHOUT_RULE = programs.benchmark_programs(["fm56"], 3)[0]
HARMLESS = programs.benchmark_programs(["fm52"], 2)[0]  # works on Keras 2
(GUILTY,) = BROKEN.guilty


@pytest.mark.parametrize(
    "result, word",
    [
        (scored(BROKEN, line=GUILTY), "on the line"),
        (scored(BROKEN), "named"),
        (scored(BROKEN, "fm09"), "missed"),
        (scored(BROKEN, ""), "missed"),
        (scored(BROKEN, "", available=False), "unavailable"),
        (scored(WITHOUT_RULE, ""), "not looked for"),
        (scored(WITHOUT_RULE, "fm56"), "named"),
        (scored(FIXED), "FALSE POSITIVE"),
        (scored(FIXED, by_framework=True), "FALSE POSITIVE"),
        (scored(HARMLESS), "FALSE POSITIVE"),
        (scored(HARMLESS, by_framework=True), "correct"),
        (scored(FIXED, ""), "correct"),
        (scored(FIXED, outcome=Outcome.RAISED), "FAILED"),  # whatever its failure is called
        (scored(FIXED, "", outcome=Outcome.HANGS), "FAILED"),
    ],
)
def test_the_word_for_a_score(result, word):
    assert result.word == word
    assert word in str(result)
    assert ("guilty" in str(result)) == (result.program.is_broken and word != "on the line")


def test_totals():
    scores = [
        scored(BROKEN, line=GUILTY),
        scored(BROKEN),
        scored(BROKEN, ""),
        scored(FIXED),
        scored(SOLVED, "", outcome=Outcome.RAISED),
        scored(SOLVED, "", available=False),
        scored(WITHOUT_RULE, ""),
    ]
    said = (
        "2 of 3 named (9 to 99 %); 1 of 3 on the line (1 to 91 %); 0 false findings beside, in 0 programs; "
        "2 of 3 findings right (9 to 99 %); 1 of 2 correct accused (1 to 99 %); 1 failed"
    )
    assert score.totals(scores) == said


def test_what_is_found_beside_a_mode_is_false():
    one, other = scored(BROKEN, line=GUILTY), scored(BROKEN, "fm02")
    both = replace(one, findings=(*one.findings, *other.findings, *other.findings))
    assert (both.word, [each.mode for each in both.false]) == ("on the line", ["fm02"] * 2)
    assert "2 false findings beside, in 1 program; 1 of 3 findings right" in score.totals([both])


# Published values, and those of closed forms: the bounds of 0 and 10 of 10 are 1 - 0.025 ** 0.1 and 0.025 ** 0.1.
@pytest.mark.parametrize(
    "hits, trials, lower, upper",
    [
        (38, 40, 0.8308, 0.9939),
        (32, 40, 0.6435, 0.9095),
        (5, 10, 0.1871, 0.8129),
        (0, 10, 0.0, 0.3085),
        (10, 10, 0.6915, 1.0),
        (0, 0, 0.0, 1.0),
    ],
)
def test_the_interval_of_a_share(hits, trials, lower, upper):
    assert rates.interval(hits, trials) == pytest.approx((lower, upper), abs=5e-5)
    if hits:  # by its definition
        assert rates.at_least(hits, trials, rates.interval(hits, trials)[0]) == pytest.approx(0.025)


def test_a_rate_in_words():
    assert rates.rate(38, 40, "faults named") == "38 of 40 faults named (83 to 99 %)"


def test_a_score_tells_what_the_observer_could_not_see():
    raised = ExceptionRaised(LINE, "Unavailable", "Unavailable: no TPU", ())
    recording = run(ObserverFailed("was_read", "KeyError: 1"), raised, outcome=Outcome.RAISED)
    result = score.score_of(BROKEN, Examination("program", [recording]))
    assert (result.word, result.failures) == ("unavailable", ("was_read: KeyError: 1",))
    assert "OBSERVER FAILED was_read: KeyError: 1" in str(result)


@pytest.mark.parametrize(
    "outcome, line, status",
    [("finds", GUILTY, 0), ("finds", 1, 0), ("misses", 0, 1), ("accuses", 0, 1)],
)
def test_the_exit_status_of_a_run(outcome, line, status, monkeypatch, capsys):
    def examined(program):
        location = Location((Frame("train.py", line, "main"),))
        finding = Finding("fm37", location, Evidence.OBSERVED, Text(), Text())
        told = program.is_broken if outcome == "finds" else outcome == "accuses"
        return Examination("program", [run()], [finding] if told else [])

    monkeypatch.setattr(score, "examine_benchmark_program", examined)
    assert score.run_benchmark(["fm37"], [3], []) == status
    assert capsys.readouterr().out.splitlines()[-1].startswith("Keras 3: ")


def test_a_mode_or_a_keras_that_is_none():
    with pytest.raises(UserError, match="mode = 'fm99'"):
        score.run_benchmark(["fm99"], [3], [])
    with pytest.raises(UserError, match="keras = 4"):
        score.run_benchmark([], [4], [])


# The score of some, in processes


@pytest.mark.replayed
@pytest.mark.parametrize("subject, word", [("broken", "on the line"), ("fixed", "correct")])
@pytest.mark.parametrize("mode", SCORED)
def test_a_broken_program_is_named_on_its_line_and_a_fixed_one_is_not(mode, subject, word):
    (program,) = [
        each for each in programs.benchmark_programs([mode], 3) if each.subject == subject
    ]
    result = score.score_of(program, programs.examine_benchmark_program(program))
    assert (result.word, result.failures) == (word, ()), str(result)


@pytest.mark.replayed
def test_without_its_rule_a_mode_is_missed(monkeypatch):
    """The score can fall."""
    known = rule.mode_rules()
    rules = [each for each in known.rules if each.mode != "fm23"]
    without = rule.ModeRules(rules, known.blame, known.reclassifications)
    monkeypatch.setattr(rule, "mode_rules", lambda: without)
    (broken,) = [each for each in programs.benchmark_programs(["fm23"], 3) if each.is_broken]
    examination = programs.examine_benchmark_program(broken)
    assert score.score_of(broken, examination).word == "missed"
