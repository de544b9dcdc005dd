"""What participants hand in for exercises, right and wrong: no wrong one is green, and no right one is red."""

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from conftest import ROOT
from law import all_tests_of, edit
from strategy_clinic.base import files
from strategy_clinic.modes import registry
from strategy_clinic.programs.switches import for_setup
from strategy_clinic.workshop import exercises, expected, grade, hints, judge, variations
from thorough import mostly_thorough

LEAST = 60


@dataclass(frozen=True)
class Solution:
    mode: str
    about: str
    right: bool
    text: str

    def __str__(self) -> str:
        return f"{self.mode} {self.about}"


@dataclass(frozen=True)
class Example:
    """A mistake, and the number of the hint that is for it."""

    mode: str
    number: int
    text: str


def listed(name: str) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yields each entry of a list with its mode and with the text that it stands for."""
    for mode, entries in tomllib.loads((ROOT / "tests" / name).read_text()).items():
        for each in entries:
            text = files.program_text(mode, each.get("of", "exercise"))
            for old, new in each["replace"]:
                assert old in text, (mode, old)
                text = text.replace(old, new)
            yield mode, each, text


def solutions() -> Iterator[Solution]:
    for mode, each, text in listed("solutions.toml"):
        yield Solution(mode, each["about"], each["right"], text)


def examples() -> Iterator[Example]:
    for mode in registry.modes():
        yield Example(mode.id, 0, files.program_text(mode.id, "exercise"))
    for mode_id, each, text in listed("hint_examples.toml"):
        yield Example(mode_id, each["hint"], text)


EXAMPLES = {f"{each.mode} {each.number}": each for each in examples()}
ALL = {str(each): each for each in solutions()}
USUAL = (
    "fm37 right for two devices alone",
    "fm37 right, with another print at the end",
    "fm39 the last part alone, which has the largest value of these data",
)


def test_the_list_is_long_and_each_is_another():
    assert len(ALL) >= LEAST and len({each.mode for each in ALL.values()}) >= 12
    assert len({(each.mode, each.text) for each in ALL.values()}) == len(ALL)
    assert sum(not each.right for each in ALL.values()) >= LEAST // 2


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_thorough(ALL, *USUAL))
def test_no_wrong_solution_is_green_and_no_right_one_red(name):
    each = ALL[name]
    found = grade.grade_program(registry.mode_by_id(each.mode), each.text)
    assert found.result in (("green", "to read") if each.right else ("red", "to read")), found.says


# What is right


def law_expected() -> list[str]:
    """What is recorded of each solution belongs to the programs as they are, and has what the notebook shows first."""
    problems = []
    for mode in registry.modes():
        if not expected.is_current(mode.id):
            problems.append(f"{mode.id} is out of date; run: {expected.RECORDER}")
        elif expected.expected_of(mode.id).runs[0].prints != mode.exercise_prints:
            problems.append(f"{mode.id} should print {mode.exercise_prints!r}")
    return problems


def law_hints() -> list[str]:
    """Every exercise has a hint as it is handed out, each in one line, and each other hint has an example."""
    problems = []
    shown = {(each.mode, each.number) for each in EXAMPLES.values()}
    for mode in registry.modes():
        found = hints.hints_of(mode.id)
        problems += [] if found else [f"{mode.id} has none"]
        problems += [f"{mode.id}: {each.says}" for each in found if "\n" in each.says]
        problems += [f"{mode.id} {n}" for n in range(len(found)) if (mode.id, n) not in shown]
    return problems


FM37 = "helpers/strategy_clinic/modes/fm37_loss_scaled_per_replica"
MUTATIONS = [
    ("law_expected", lambda root: (root / FM37 / "expected.json").unlink()),
    ("law_expected", edit(f"{FM37}/exercise.py", "SGD(0.05)", "SGD(0.01)")),
    ("law_expected", edit(f"{FM37}/page.py", "[0.05]", "[0.06]")),
    ("law_hints", lambda root: (root / FM37 / "hints.toml").unlink()),
    (
        "law_hints",
        edit(f"{FM37}/hints.toml", "says = ", "says = 'a'\n[[hint]]\nshows = 'b'\nsays ="),
    ),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())
MODES = [mode.id for mode in registry.modes()]


@pytest.mark.slow
@pytest.mark.parametrize("mode", mostly_thorough(MODES, "fm37"))
def test_a_solution_prints_what_is_recorded(mode):
    recorded = expected.expected_of(mode)
    solution = files.program_text(mode, "solution")
    attempt = exercises.attempt_of(solution, files.program_text(mode, "exercise"))
    found = judge.judge(registry.mode_by_id(mode), attempt, recorded, grade.EXERCISE_LIMIT)
    assert found.result == "green", found.says


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_thorough(EXAMPLES, "fm37 0", "fm37 1", "fm39 1"))
def test_a_hint_is_for_what_its_mistake_prints(name):
    each = EXAMPLES[name]
    attempt = exercises.Attempt(each.text, each.text)
    mode, recorded = registry.mode_by_id(each.mode), expected.expected_of(each.mode)
    found = judge.judge(mode, attempt, recorded, grade.EXERCISE_LIMIT)
    hint = hints.hints_of(each.mode)[each.number]
    assert found.result == "red" and found.says.endswith(f". Hint: {hint.says}"), found.says


# Other data

DATA = """import numpy as np
import tensorflow as tf

data = tf.data.Dataset.range(8).batch(2)
for number in tf.range(3):
    print(number, tf.ones((2, 1)) * np.ones((2, 1)))
"""


def test_data_are_what_makes_arrays_and_no_steps_of_a_loop():
    data = variations.data_of(DATA)
    assert sorted(data) == ["np.ones((2, 1))", "tf.data.Dataset.range(8)", "tf.ones((2, 1))"]


@pytest.mark.parametrize("variation", variations.VARIATIONS)
def test_a_program_gets_other_data_in_any_layout(variation):
    data = variations.data_of(DATA)
    changed = variations.varied(DATA, data, variation)
    assert changed != ast.unparse(ast.parse(DATA)) + "\n"
    assert (
        variations.varied(DATA.replace("tf.ones((2, 1))", "tf.ones( (2,1) )"), data, variation)
        == changed
    )
    assert "for number in tf.range(3)" in changed


def test_a_program_with_data_of_its_own_has_no_other_data():
    with pytest.raises(variations.OtherData, match=r"tf\.ones\(\(2, 1\)\)"):
        variations.require_data(DATA.replace("tf.ones", "tf.fill"), variations.data_of(DATA))


def test_flags_only_change_places():
    assert variations.variations_of(["tf.constant([[1.0]] * 6 + [[0.0]] * 8)"]) == ["reversed"]
    assert variations.variations_of(["tf.ones((2, 1))"]) == list(variations.VARIATIONS)
    assert variations.variations_of([]) == []


@pytest.mark.parametrize(
    "printed, same",
    [
        ("kernel: [[0.125 1.  ]]", True),
        ("kernel: [[0.12501 1.0002]]", True),
        ("kernel: [[0.13 1.]]", False),
        ("kernel: [[0.125]]", False),
        ("kernels: [[0.125 1.]]", False),
        ("kernel: [[nan 1.]]", False),
    ],
)
def test_numbers_may_differ_by_rounding(printed, same):
    assert judge.alike(printed, "kernel: [[0.125 1.]]") is same


# Prints

TASK = 'x = 1\nfor n in (1, 2):\n    print("n:", n * x)\nprint("x:", x)\nprint(x + 1)\n'
PRINTED = "n: 1\nn: 2\nx: 1\n2\n"
PRINTS = {
    "added at the end": TASK + "print('and', x)\n",
    "added at the start": "print('hello')\n" + TASK,
    "added with the same words": TASK + "print(x + 1)\n",
    "changed": TASK.replace('print("x:", x)', 'print(f"x is {x}")'),
    "changed in a loop": TASK.replace("n * x)", "n * x, n)"),
    "removed at the end": TASK.replace("print(x + 1)\n", ""),
    "given away": "list(map(print, 'ab'))\n" + TASK,
    "in a condition": "x = 2 if print('x') else 1\n" + TASK,
}


@pytest.mark.parametrize("text", PRINTS.values(), ids=PRINTS)
def test_only_what_the_exercise_prints_is_printed(text, capsys):
    attempt = exercises.attempt_of(f"y = 1\n{text}", TASK)
    exec(compile(attempt.program, "attempt", "exec"), {})
    assert capsys.readouterr().out == PRINTED


def test_a_print_that_cannot_be_put_back_is_one_sentence():
    text = TASK.replace('    print("n:", n * x)', "    pass")
    with pytest.raises(exercises.UserError, match=r"put back print\('n:', n \* x\)"):
        exercises.attempt_of(text, TASK)


def test_a_line_between_those_of_the_strategy_stays_in_no_setup_s_way():
    task = files.program_text("fm37", "exercise")
    text = task.replace("strategy = tf", "batch_size = 16\nstrategy = tf", 1)
    program = exercises.attempt_of(text, task).program
    assert "batch_size = 16\ncpu = tf.config" in program
    setup = expected.expected_of("fm37").setup.but(devices=1)
    assert for_setup(program, setup, "CPU").count("strategy = ") == 1


def test_more_prints_alone_are_no_work_on_an_exercise():
    with pytest.raises(exercises.Unchanged):
        exercises.attempt_of("print('hello')\n" + TASK, TASK)
