"""Programs that are drawn: their source, what a search finds and does not look for again, and the process that runs them."""

import ast
import random
import time

import prove_drawn
import prove_repairs
import pytest
from conftest import ROOT
from hypothesis import Phase, find, settings
from hypothesis.errors import NoSuchExample
from strategy_clinic import cli
from strategy_clinic.sweep.differences import Outcome, Result
from strategy_clinic.sweep.generated import command, draws, known
from strategy_clinic.sweep.generated import search as searching
from strategy_clinic.sweep.generated.program import DATA, Program
from strategy_clinic.sweep.generated.search import Finding, Search
from strategy_clinic.sweep.generated.worker import worker
from thorough import thorough

ONE_NUMBER = draws.Loss("lambda y, found: tf.reduce_mean(tf.square(y - found))", "numbers")
CLIPPED = Program(options=("clipnorm=0.01",))


def each_choice():
    """Returns a program for each choice there is, plain in everything else."""
    lists = {
        "layers": draws.DENSE,
        "options": draws.OPTIONS,
        "compiled": draws.COMPILED,
        "fitted": draws.FITTED,
    }
    single = {
        "loss": draws.LOSSES,
        "optimizer": draws.OPTIMIZERS,
        "model": draws.MODELS,
        "rows": draws.ROWS,
        "replicas": (2, 4),
        "data": tuple(DATA),
        "method": draws.METHODS,
        "policy": tuple(draws.NUDGES),
        "values": draws.VALUES,
        "strategy": draws.STRATEGIES,
        "interrupted": ("", *draws.INTERRUPTIONS),
        "again": draws.AGAIN,
    }
    made = [Program(**{name: (each,)}) for name, values in lists.items() for each in values]
    made += [Program(**{name: each}) for name, values in single.items() for each in values]
    for inputs, (first, more) in draws.LAYERS.items():
        made += [Program(inputs=inputs, layers=(*first, each)) for each in more]
    return made


def test_every_program_is_python_and_says_what_it_chose():
    for program in each_choice():
        ast.parse(program.source)
        assert program.choices or program == Program()


def test_the_plainest_program_has_no_choice_and_is_what_a_search_shrinks_to():
    assert Program().choices == frozenset()
    shrunk = settings(database=None, phases=[Phase.generate, Phase.shrink])
    plainest = find(draws.programs(), lambda _: True, settings=shrunk)
    assert plainest == Program()


@pytest.mark.parametrize("choices", [draws.OPTIONS, draws.COMPILED, draws.FITTED])
def test_no_argument_is_given_twice(choices):
    """Of a call; the optimizer, compile and fit are three."""
    wrong = settings(database=None, max_examples=100)

    def given_twice(drawn):
        names = [draws.argument(each) for each in drawn]
        return len(names) != len(set(names))

    with pytest.raises(NoSuchExample):
        find(draws.some(choices, 4), given_twice, settings=wrong)


def test_what_is_known_begins_as_a_choice_and_its_report_is_there():
    choices = set().union(*(program.choices for program in each_choice()))
    for beginnings, reference in known.KNOWN.items():
        for beginning in beginnings:
            assert beginning in WORDS or any(choice.startswith(beginning) for choice in choices)
        if not reference.startswith("https://"):
            assert (ROOT / command.reference(reference)).exists()


WORDS = ("than with dense gradients", "than traced", "steps")  # of how a program differs


def test_what_is_known_of_a_program_depends_on_how_it_differs():
    program = Program(
        inputs="ids", layers=("keras.layers.Embedding(9, 3)",), options=("clipnorm=0.01",)
    )
    says = {
        "weights 1, right 2": "clipping_before_all_reduce",
        "than with dense gradients: weights 1, right 2": "clipping_of_duplicate_ids",
    }
    for words, report in says.items():
        assert known.known(program, Result(Outcome.DIFFERS, [], words)) == report


# Programs beside a program


def test_a_program_has_twins_that_must_give_the_same():
    assert Program().twins == {}
    for interruption in draws.INTERRUPTIONS:
        program = Program(interrupted=interruption)
        assert program.twins == {"not interrupted": Program().source}
    eager = Program(compiled=("run_eagerly=True",))
    assert eager.twins == {"traced": Program().source}
    dense = Program(inputs="ids", layers=("keras.layers.Embedding(9, 3)",)).twins
    assert "densify(model.optimizer)" in dense["with dense gradients"]
    for source in dense.values():
        ast.parse(source)


def test_a_program_says_how_many_steps_it_has_counted():
    def steps(**choices):
        return Program(**choices).pairs()["steps"].rpartition(" ")[2]

    assert [steps(), steps(rows=13), steps(again="fit again")] == ["4", "2", "8"]
    assert steps(data="a generator of one epoch", rows=29) == "2"
    assert steps(fitted=("steps_per_epoch=1",)) == "2" and steps(fitted=("initial_epoch=1",)) == "2"
    assert "steps" not in Program(options=("gradient_accumulation_steps=2",)).pairs()


@pytest.mark.slow
def test_what_is_drawn_fits_together():
    """Hypothesis finds no program that asks for what cannot be: the rest of a generator, or a file with an own loss."""
    wrong = settings(database=None, max_examples=500)

    def cannot_be(program):
        goes_on = program.data in draws.GOES_ON
        return (
            (bool(program.interrupted) and not goes_on)
            or (program.interrupted in draws.SAVES and "lambda" in program.loss.source)
            or ("steps_per_epoch=1" in program.fitted and program.rows <= 16)
            or (program.method == draws.LOOP and program.loss != draws.LOSSES[0])
        )

    with pytest.raises(NoSuchExample):
        find(draws.programs(), cannot_be, settings=wrong)


# The search


def wrong_if(*faults):
    """Returns a way to run programs in which those with all choices of a fault differ, and what has been run."""
    run = []

    def result_of(program):
        run.append(program)
        for choices, in_turn in faults:
            if choices <= program.choices:
                return Result(Outcome.DIFFERS, ["weights"], "weights 1, right 2", 0.5, in_turn)
        return Result(Outcome.SAME)

    return result_of, run


def found_by(result_of, count):
    """Returns the choices of so many findings."""
    looked = Search(result_of, time.monotonic() + 60)
    numbers = random.Random(1)
    return [looked.next(numbers).program.choices for _ in range(count)]


CLIP, NUMBER = frozenset({"clipnorm=0.01"}), frozenset({f"loss: {ONE_NUMBER.source}"})


@pytest.mark.slow
def test_each_fault_is_found_once_as_its_smallest_program():
    result_of, run = wrong_if((CLIP, False), (NUMBER, False))
    first, second = found_by(result_of, 2)
    assert {first, second} == {CLIP, NUMBER}
    after = run[[program.choices for program in run].index(first) + 1 :]
    assert len(run) == len(set(run))
    assert sum(first < program.choices for program in after) < len(after)


def test_a_fault_of_two_choices_is_shrunk_to_both():
    both = frozenset({"clipnorm=0.01", "replicas: 4"})
    assert found_by(wrong_if((both, False))[0], 1) == [both]


@pytest.mark.slow
def test_what_agrees_in_turn_hides_nothing_else():
    uneven, odd = frozenset({"rows: 29"}), frozenset({"rows: 29", "clipnorm=0.01"})
    result_of, _ = wrong_if((odd, False), (uneven, True))
    assert set(found_by(result_of, 2)) == {uneven, odd}


def test_nothing_is_run_when_the_time_is_over(monkeypatch):
    monkeypatch.setattr(searching, "EXAMPLES", 50)  # all of them are drawn
    result_of, run = wrong_if((CLIP, False))
    assert Search(result_of, time.monotonic() - 1).next(random.Random(1)) is None
    assert run == []


@pytest.mark.slow
def test_each_finding_is_told_when_it_is_known_and_the_search_ends_with_the_time(monkeypatch):
    """By a clock that shows as many seconds as programs were run."""
    told = []
    result_of, run = wrong_if((CLIP, False))
    monkeypatch.setattr(searching, "EXAMPLES", 100)
    monkeypatch.setattr(searching.time, "monotonic", lambda: len(run))
    looked = searching.search(result_of, 1, 1, lambda finding: told.append((finding, len(run))))
    assert [finding for finding, _ in told] == looked.found and looked.found[0].program == CLIPPED
    assert [number for _, number in told] == [finding.programs for finding in looked.found]
    assert len(run) == 61  # one more than there are seconds


# The command


def test_a_finding_is_told_with_its_report_or_with_its_source():
    result = Result(Outcome.DIFFERS, ["weights"], "weights 1, right 2", 0.5)
    said = command.in_words(Finding(CLIPPED, result, 1.0, 1))
    assert said.splitlines() == [
        "clipnorm=0.01",
        "  differs: weights 1, right 2",
        "  upstream/clipping_before_all_reduce.md",
    ]
    said = command.in_words(Finding(Program(optimizer="Adam"), result, 1.0, 1))
    assert "news: no report tells of it" in said and "keras.optimizers.Adam(0.05)" in said


def test_the_command_reaches_the_search(monkeypatch):
    asked = []
    monkeypatch.setattr(command, "generate_programs", lambda *options: asked.append(options) or 0)
    assert cli.main(["sweep", "--generate", "2", "--seed", "7"]) == 0
    assert asked == [(2.0, 7)]


# The proof by repairs, tools/prove_drawn.py

REPAIRS = [prove_repairs.Repair(name, (f"report {name}",), (), ()) for name in "abcdefg"]


def proven_by(report, *needed):
    """Returns the names of the repairs that prove a program, which differs unless these are made, and how many were tried."""
    tried = []

    def differs(some):
        tried.append(some)
        return not set(needed) <= {each.name for each in some}

    found = prove_drawn.proven(report, REPAIRS, differs)
    return "".join(each.name for each in found), len(tried)


@pytest.mark.parametrize(
    "report, needed, found",
    [
        ("report c", "c", ("c", 1)),
        ("report a", "c", ("c", 7)),
        ("", "g", ("g", 7)),
        ("report b", "x", ("", 2)),
        ("", "ag", ("abcdefg", 3)),
    ],
)
def test_a_program_is_proven_by_the_fewest_repairs(report, needed, found):
    assert proven_by(report, *needed) == found


def test_a_proof_says_whether_the_choices_told_of_the_error():
    assert prove_drawn.verdict("report a", []) == ("no repair takes the difference away", True)
    assert prove_drawn.verdict("report a", REPAIRS[:1]) == ("no longer differs with a", True)
    says = "no longer differs with b: another error"
    assert prove_drawn.verdict("report a", REPAIRS[1:2]) == (says, False)


# Real programs


class Crashing(Program):
    source = "import os\n\n\ndef run(strategy):\n    os._exit(3)\n"


USUAL = [
    (Program(), Outcome.SAME),
    (Program(loss=ONE_NUMBER), Outcome.DIFFERS),
    (Program(loss=draws.Loss("'no such loss'", "numbers")), Outcome.UNAVAILABLE),
]
IN_TURN = Program(rows=29, replicas=4)
MORE = [
    (IN_TURN, Outcome.DIFFERS),
    (Program(optimizer="Adam", layers=draws.DENSE[:1]), Outcome.SAME),
    (Program(data="a generator of slices"), Outcome.DIFFERS),
    (Program(interrupted="stopped between epochs"), Outcome.SAME),
    (Program(interrupted="stopped between epochs", again="fit again"), Outcome.DIFFERS),
    (
        Program(fitted=("steps_per_epoch=1",), compiled=("steps_per_execution=2",)),
        Outcome.DIFFERS,
    ),
    (Program(strategy="keras.distribution"), Outcome.DIFFERS),
]


@pytest.mark.slow
@pytest.mark.parametrize("cases", [USUAL, thorough(MORE)], ids=["usual", "more"])
def test_real_programs_differ_where_keras_does_and_a_crash_costs_one(cases):
    with worker() as asked:
        assert asked.result(Crashing()).outcome is Outcome.CRASHES
        results = [asked.result(program) for program, _ in cases]
    assert [each.outcome for each in results] == [outcome for _, outcome in cases]
    turns = [program is IN_TURN for program, _ in cases]
    assert [each.in_turn for each in results] == turns
