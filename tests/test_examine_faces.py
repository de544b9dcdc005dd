"""How the examiner is asked and answers, without the runs: SARIF's own schema, a terminal, a cell, pytest. No TensorFlow."""

import copy
import io
import json
import os
import pty
import re
import subprocess
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import jsonschema
import pytest
from conftest import ROOT
from strategy_clinic.examiner.frontends import in_process, program_input
from strategy_clinic.examiner.recording import Examination, Finding, Observation
from strategy_clinic.examiner.report import serialize, terminal
from strategy_clinic.examiner.runs import plan as examination_of
from strategy_clinic.examiner.runs.sandbox import Case

pytest_plugins = ["pytester"]

# As published by OASIS: github.com/oasis-tcs/sarif-spec, sarif-2.1/schema; under the terms of its LICENSE.md.
SCHEMA = json.loads((ROOT / "tests" / "sarif-schema-2.1.0.json").read_text())
AT = ["/program/train.py", 12, "main"]
SICK = Finding("fm05", (AT,), "no checkpoint holds it", "observed on 2 devices: line 9 saved", (2,))
NOWHERE = Finding("fm37", (), "too large", "compared 1 and 2 devices", (1, 2))


def examination(*findings, **options):
    return Examination("train.py", [Observation("watched", 2)], list(findings), **options)


# SARIF


def violations(told: dict) -> list[str]:
    found = jsonschema.Draft4Validator(SCHEMA).iter_errors(json.loads(json.dumps(told)))
    return [f"{list(each.absolute_path)}: {each.message}" for each in found]


@pytest.mark.parametrize("findings", [(), (SICK,), (SICK, NOWHERE, SICK)], ids=len)
def test_sarif_is_what_its_schema_asks_for(findings):
    told = serialize.as_sarif(examination(*findings), ROOT)
    assert violations(told) == [] and len(told["runs"][0]["results"]) == len(findings)


@pytest.mark.parametrize(
    "path, value",
    [
        (("version",), "2.0.0"),
        (("runs", 0, "tool", "driver", "name"), None),
        (("runs", 0, "results", 0, "message"), "a text"),
        (("runs", 0, "results", 0, "level"), "bad"),
        (("runs", 0, "results", 0, "locations", 0, "physicalLocation", "region", "startLine"), 0),
        (("runs", 0, "results", 0, "mode"), "fm05"),
    ],
    ids=lambda value: str(value)[-30:],
)
def test_what_the_schema_does_not_allow_is_noticed(path, value):
    told = copy.deepcopy(serialize.as_sarif(examination(SICK), ROOT))
    place = told
    for each in path[:-1]:
        place = place[each]
    place[path[-1]] = value
    assert len(violations(told)) == 1


# A failure that is none of the modes


def test_a_failure_of_its_own_is_told_with_its_line(tmp_path, monkeypatch):
    frames = [[str(tmp_path / "train.py"), 7, "main"], [str(tmp_path / "train.py"), 9, "<module>"]]
    raised = {"fact": "raised", "error": "KeyError", "text": "KeyError: 'x'", "at": frames}
    failed = Examination(
        "train.py", [Observation("watched", 2, (raised,))], failure="KeyError: 'x'"
    )
    monkeypatch.setattr(examination_of, "examine", lambda *_: failed)
    monkeypatch.chdir(tmp_path)
    asked = (Case(("train.py",), tmp_path), [1], False, print)
    assert program_input.examine_words_of(*asked).failure == "KeyError: 'x' (train.py:7)"


# The terminal


@contextmanager
def terminal_of(monkeypatch):
    """What is written to a terminal; pytest puts its own streams in place when a test begins."""
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = io.StringIO()
    stream.isatty = lambda: True
    with redirect_stdout(stream), redirect_stderr(stream):
        yield stream


def without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


REPORTS = [
    examination(SICK, NOWHERE),
    examination(),
    examination(failure="KeyError: [bold]'x'", notes=["stopped"]),
]


@pytest.mark.parametrize("found", REPORTS, ids=["findings", "nothing", "failure"])
def test_a_terminal_has_the_same_words_in_colours(found, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    with terminal_of(monkeypatch) as stream:
        terminal.show_report(found)
    shown = stream.getvalue()
    assert without_colours(shown).split() == serialize.in_words(found).split()
    assert "\x1b[" in shown or not found.findings


def test_no_colours_where_they_are_not_wanted(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    with terminal_of(monkeypatch) as stream:
        terminal.show_report(examination(SICK))
    assert "\x1b[3" not in stream.getvalue() and "fm05" in stream.getvalue()


def test_a_pipe_gets_plain_lines(capsys):
    terminal.show_report(examination(SICK))
    with terminal.progress() as tell:
        tell("running on 2 devices (watched) ...")
    said = capsys.readouterr()
    assert said.out == serialize.in_words(examination(SICK)) + "\n"
    assert said.err == "running on 2 devices (watched) ...\n"


def test_each_run_stays_in_sight(monkeypatch):
    with terminal_of(monkeypatch) as stream, terminal.progress() as tell:
        tell("running on 2 devices (watched) ...")
        tell("  finished after 8.1 s")
        tell("running on 1 device (compared) ...")
        tell("  stopped after 2.0 s")
    lines = without_colours(stream.getvalue())
    assert "running on 2 devices (watched): finished after 8.1 s\n" in lines
    assert "running on 1 device (compared): stopped after 2.0 s\n" in lines


def test_no_sign_of_a_program_steers_a_terminal():
    steering = Finding("fm05", (AT,), "x\x1b[2Jy", "raised\x07 on 2 devices", (2,))
    words = serialize.in_words(examination(steering, failure="a\x1b[31mb\nc"))
    assert all(line.isprintable() for line in words.splitlines())


def test_a_real_terminal_gets_colours_and_a_mistake_in_one_sentence(tmp_path):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "strategy_clinic", "examine", "none.ipynb"]
    places = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm"}
    with subprocess.Popen(command, cwd=tmp_path, env=places, stdout=theirs, stderr=theirs) as run:
        assert run.wait(30) == 2
    said = os.read(ours, 10_000).decode()
    assert "clinic: There is no file" in said and said.strip().count("\n") == 0


# pytest


def test_the_fixture_says_what_it_was_not_given(pytester):
    pytester.makepyfile(
        """
        def test_absent(examine):
            examine("none.py")

        def test_unknown(examine):
            examine("none.py", device=2)

        def test_counts(examine):
            examine("none.ipynb", devices=(1,))
        """
    )
    done = pytester.runpytest_inprocess(
        "-p", "strategy_clinic.examiner.pytest_plugin", "-p", "no:cacheprovider"
    )
    done.assert_outcomes(failed=3)
    text = done.stdout.str()
    assert "There is no file 'none.py'" in text and "There is no file" in text
    assert "examine knows keras, python, restart, steps, limit" in text
    assert "launch.py" not in text and "plugin.py" not in text


def test_importing_the_plugin_costs_nothing():
    code = "import strategy_clinic.examiner.pytest_plugin, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    ours = {name for name in done.stdout.split() if name.startswith("strategy_clinic.")}
    assert ours == {
        "helpers.base",
        "strategy_clinic.base.public_api",
        "helpers.examine",
        "strategy_clinic.examiner.pytest_plugin",
    }


def test_findings_are_true_and_told_in_one_line():
    assert not in_process.Found() and repr(in_process.Found()) == "<nothing found>"
    found = in_process.Found(examination(SICK))
    assert found and repr(found) == "</program/train.py:12  fm05  no checkpoint holds it>"
