"""Negative controls: a notebook whose failure, fix, claims or exercise is not as declared is not rendered.

Two edits are made in each notebook: without the failing line, and with the bug in the fix, the step that judges the
experiment has to raise. The other edits concern code that all notebooks share, and are made in one mode of every kind.
"""

import re

import pytest
from conftest import TABLE, changed
from page_scripts import complaints, script
from strategy_clinic.base.errors import UserError
from strategy_clinic.modes import registry
from strategy_clinic.rendering import render, sources

pytestmark = pytest.mark.slow

IDS = [mode.id for mode in registry.modes()]
# A loud mode, a silent one and one that is both, under both generations of Keras.
KINDS = [("fm17", 3), ("fm23", 2), ("fm11", 3), ("fm11", 2)]


def lines_with(text: str, marker: str) -> str:
    return next(line for line in text.splitlines() if marker in line)


def indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def failing_line_gone(text: str) -> str:
    line = lines_with(text, "# guilty")
    return text.replace(line, f"{indent(line)}pass")


def bug_back_in_the_fix(text: str) -> str:
    """The repairing line becomes the guilty one; where the repair is a block around it, the block is taken away."""
    guilty, repair = lines_with(text, "# guilty"), lines_with(text, "# repair")
    opens_block = repair.split("#")[0].rstrip().endswith(":")
    return text.replace(repair, f"{indent(repair)}{'if True:' if opens_block else guilty.strip()}")


def failure_cured(source):
    changed(
        source,
        "session.reproduces(broken)",
        "session.reproduces(experiment(lambda setup: None))",
    )


def another_failure(source):
    changed(
        source, "session.reproduces(broken)", "session.reproduces(experiment(lambda setup: 1 // 0))"
    )


def proof_of_nothing(source):
    changed(source, "session.proves(fixed)", "session.proves(experiment(lambda setup: None))")


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
    changed(source, "session.exercise(attempt)", "session.exercise(fixed)")


def solution_that_solves_nothing(source):
    changed(source, "session.solution(solved)", "session.solution(attempt)")


def step_left_out(source):
    changed(source, "session.exercise(attempt)\n", "")


OF_THE_MACHINERY = {
    failure_cured: "did not reproduce",
    another_failure: "did not reproduce",
    proof_of_nothing: "at 'fixed'",
    claim_turned_round: "disagrees",
    claim_untested: "no run in this notebook tests it",
    exercise_green_from_the_start: "green before",
    solution_that_solves_nothing: "at 'solution'",
    step_left_out: "not whole",
}


def without_table(source):
    """No control concerns the table over many setups, which takes most of a notebook's time."""
    source.write_text(TABLE.sub("pass", source.read_text()))


def refused(mode: str, control, says: str):
    source = sources.sources([mode])[0]
    stored = sources.notebook_path(source).read_bytes()
    control(source)
    without_table(source)
    with pytest.raises(UserError, match=says):
        render.render_all([mode])
    assert sources.notebook_path(source).read_bytes() == stored


def said_of(mode: str, of_the_failure, of_the_fix) -> list[str]:
    """What the clinic says of both experiments of a source, each after an edit."""
    text = sources.sources([mode])[0].read_text()
    return complaints(
        [
            script(of_the_failure(text), "broken", "reproduces"),
            script(of_the_fix(text), "fixed", "proves"),
        ]
    )


@pytest.mark.parametrize("mode", IDS)
def test_a_notebook_is_refused_without_its_failing_line_and_with_the_bug_in_its_fix(mode):
    cured, bugged = said_of(mode, failing_line_gone, bug_back_in_the_fix)
    assert cured.startswith("Disagreement: ") and "did not reproduce" in cured
    assert bugged.startswith("Disagreement: ") and "at 'fixed'" in bugged


@pytest.mark.parametrize("mode", dict.fromkeys(mode for mode, _ in KINDS))
def test_a_notebook_as_it_is_keeps_its_word(mode):
    assert said_of(mode, str, str) == ["", ""]


@pytest.mark.parametrize("mode, keras", KINDS)
@pytest.mark.parametrize("control", OF_THE_MACHINERY, ids=lambda control: control.__name__)
def test_every_kind_is_refused(project, control, mode, keras):
    changed(sources.sources([mode])[0], "\nkeras = 3", f"\nkeras = {keras}")
    refused(mode, control, OF_THE_MACHINERY[control])


def test_there_is_every_kind():
    """Loud, silent and both; and both generations, among them a mode whose symptom differs between them."""
    modes = {mode.id: mode for mode in registry.modes()}
    assert {modes[mode].loud for mode, _ in KINDS} == {"loud", "silent", "loud or silent"}
    assert {keras for _, keras in KINDS} == {2, 3}
    both = [mode for mode, keras in KINDS if keras == 2 and (mode, 3) in KINDS]
    assert both and all({each.keras for each in modes[m].symptoms} == {(2,), (3,)} for m in both)
