"""Negative controls: a notebook whose failure, fix, claims or exercise is not what it says is not rendered."""

import re

import pytest
from conftest import changed

from helpers import catalog, render, sources
from helpers.refusals import Refused

IDS = [mode.id for mode in catalog.modes()]


def lines_with(text: str, marker: str) -> str:
    return next(line for line in text.splitlines() if marker in line)


def indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def failing_line_gone(source):
    line = lines_with(source.read_text(), "# guilty")
    changed(source, line, f"{indent(line)}pass")


def failure_cured(source):
    changed(
        source,
        "with MODE.reproduces(setup):\n    broken(setup)",
        "with MODE.reproduces(setup):\n    pass",
    )


def another_failure(source):
    changed(source, "    broken(setup)\n", '    raise ValueError("something else")\n', 1)


def bug_back_in_the_fix(source):
    """The repairing line becomes the guilty one; where the repair is a block around it, the block is taken away."""
    text = source.read_text()
    guilty, repair = lines_with(text, "# guilty"), lines_with(text, "# repair")
    opens_block = repair.split("#")[0].rstrip().endswith(":")
    changed(source, repair, f"{indent(repair)}{'if True:' if opens_block else guilty.strip()}")


def proof_of_nothing(source):
    changed(
        source, "MODE.proves(fixed, setup)", "MODE.proves(experiment(lambda setup: None), setup)"
    )


def claim_turned_round(source):
    text = source.read_text()
    word = re.search(r'Claim\(.*, "(true|false|half)"\)', text).group(1)
    changed(source, f'"{word}"),', f'"{"false" if word == "true" else "true"}"),', 1)


def claim_untested(source):
    changed(
        source,
        "    claims=(\n",
        '    claims=(\n        Claim("000-C99", "the moon is made of cheese", "false"),\n',
    )


def exercise_green_from_the_start(source):
    changed(source, "MODE.exercise(attempt, setup)", "MODE.exercise(fixed, setup)")


def solution_that_solves_nothing(source):
    changed(source, "MODE.solution(solved, setup)", "MODE.solution(attempt, setup)")


def step_left_out(source):
    changed(source, "MODE.proves(fixed, setup)\n", "")


CONTROLS = {
    failing_line_gone: "did not reproduce",
    failure_cured: "did not reproduce",
    another_failure: "did not reproduce",
    bug_back_in_the_fix: "at 'fixed'",
    proof_of_nothing: "at 'fixed'",
    claim_turned_round: "disagrees",
    claim_untested: "no run in this notebook tests it",
    exercise_green_from_the_start: "green before",
    solution_that_solves_nothing: "at 'solution'",
    step_left_out: "not whole",
}


def without_table(source):
    """No control concerns the table over many setups, which takes most of a notebook's time."""
    text = source.read_text()
    source.write_text(re.sub(r"^MODE\.table\(.*\)$", "pass", text, flags=re.M))


@pytest.mark.parametrize("mode", IDS)
@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.__name__)
def test_rendering_refuses(project, control, mode):
    source = sources.sources([mode])[0]
    stored = source.with_suffix(".ipynb").read_bytes()
    control(source)
    without_table(source)
    with pytest.raises(Refused, match=CONTROLS[control]):
        render.render_all([mode])
    assert source.with_suffix(".ipynb").read_bytes() == stored
