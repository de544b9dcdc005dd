"""What a terminal, a pipe and pytest get of an examination, without the runs. No TensorFlow."""

import io
import os
import pty
import re
import subprocess
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import pytest
from conftest import ROOT
from strategy_clinic.examiner import pytest_plugin
from strategy_clinic.examiner.edits import Edit, Repair
from strategy_clinic.examiner.frontends import in_process
from strategy_clinic.examiner.report import terminal, text
from strategy_clinic.examiner.runs.progress import FindingKnown, RunEnded, RunStarted
from strategy_clinic.observer.events import Outcome
from test_report import NOWHERE, examination, finding

pytest_plugins = ["pytester"]

STARTED = RunStarted("on 2 devices (watched)")


@contextmanager
def terminal_of(monkeypatch):
    """What is written to a terminal; pytest puts its own streams in place when a test begins."""
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = io.StringIO()
    stream.isatty = lambda: True
    with redirect_stdout(stream), redirect_stderr(stream):
        yield stream


def without_colours(written: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", written)


REPAIR = Repair("fm05", "/program/train.py", 12, "[bold]a\n", (Edit((1, 1), (1, 8), "x\x1b[2Jb"),))
REPORTS = [
    examination(finding(), NOWHERE),
    examination(),
    examination(failure="KeyError: [bold]'x'", notes=["stopped"]),
    examination(finding(), repairs=[REPAIR]),
]


@pytest.mark.parametrize("result", REPORTS, ids=["findings", "nothing", "failure", "repair"])
def test_a_terminal_has_the_same_words_in_colours(result, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    with terminal_of(monkeypatch) as stream:
        terminal.show_report(result)
    shown = stream.getvalue()
    assert without_colours(shown).split() == text.in_words(result).split()
    assert "\x1b[" in shown or not result.findings
    assert ("\x1b[1;31m" in shown) == bool(result.failure)


def test_no_colours_where_they_are_not_wanted(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    with terminal_of(monkeypatch) as stream:
        terminal.show_report(examination(finding()))
    assert "\x1b[3" not in stream.getvalue()
    assert "fm05" in stream.getvalue()


def test_a_pipe_gets_plain_lines(capsys):
    terminal.show_report(examination(finding()))
    with terminal.progress() as report:
        report(STARTED)
        report(RunEnded("worker 0", Outcome.KILLED, 2.04))
    written = capsys.readouterr()
    assert written.out == text.in_words(examination(finding())) + "\n"
    assert written.err == "running on 2 devices (watched) ...\n  worker 0 killed after 2.0 s\n"


def test_a_finding_is_told_when_it_is_known(monkeypatch, capsys):
    known = FindingKnown(finding())
    line = text.progress_in_words(known)
    assert line.startswith("known so far: ") and "fm05" in line and str(finding().message) in line
    with terminal.progress() as report:
        report(known)
    assert capsys.readouterr().err == f"{line}\n"
    with terminal_of(monkeypatch) as stream, terminal.progress() as report:
        report(STARTED)
        report(known)
        report(RunEnded("", Outcome.FINISHED, 8.1))
    assert f"{line}\n" in without_colours(stream.getvalue())


def test_a_stored_notebook_says_the_same_each_time():
    ended = RunEnded("", Outcome.FINISHED, 2.04)
    assert text.progress_in_words(ended, seconds=False) == "  finished"


def test_each_run_stays_in_sight(monkeypatch):
    with terminal_of(monkeypatch) as stream, terminal.progress() as report:
        report(STARTED)
        report(RunEnded("", Outcome.FINISHED, 8.1))
        report(RunStarted("in several processes, as multi_worker asks for"))
        report(RunEnded("worker 0", Outcome.FINISHED, 2.0))
        report(RunEnded("worker 1", Outcome.STOPPED, 2.1))
    lines = without_colours(stream.getvalue())
    assert "running on 2 devices (watched): finished after 8.1 s\n" in lines
    assert "multi_worker asks for: worker 0 finished after 2.0 s\n" in lines
    assert "multi_worker asks for: worker 1 stopped after 2.1 s\n" in lines


@pytest.mark.slow
def test_a_real_terminal_gets_colours_and_a_mistake_in_one_sentence(tmp_path):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "strategy_clinic", "examine", "none.ipynb"]
    places = os.environ | {"PYTHONPATH": str(ROOT / "helpers"), "TERM": "xterm"}
    with subprocess.Popen(command, cwd=tmp_path, env=places, stdout=theirs, stderr=theirs) as run:
        assert run.wait(30) == 2
    written = os.read(ours, 10_000).decode()
    assert "clinic: There is no file" in written
    assert written.strip().count("\n") == 0


# pytest


def test_the_fixture_fails_a_test_with_one_sentence(pytester):
    pytester.makepyfile(
        """
        def test_absent(clinic_examine):
            clinic_examine("none.py")

        def test_unknown(clinic_examine):
            clinic_examine("none.py", device=2)

        def test_counts(clinic_examine):
            clinic_examine("none.ipynb", devices=(1,))

        def test_nothing(clinic_examine):
            clinic_examine()
        """
    )
    done = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    done.assert_outcomes(failed=4)
    written = done.stdout.str()
    assert "There is no file 'none.py'" in written
    assert f"There is no file '{pytester.path / 'none.ipynb'}'" in written
    assert "clinic_examine knows keras, python, restart, steps, limit" in written
    assert "Which program?" in written
    assert "program_spec.py" not in written and "pytest_plugin.py" not in written


@pytest.mark.parametrize(
    "told, partly, reason",
    [
        (examination(), False, ""),
        (examination(finding(), unseen=["x"]), False, ""),
        (examination(failure="KeyError: 1"), True, "none of the modes: KeyError: 1"),
        (
            examination(unseen=["x"]),
            False,
            "nothing found in a run without a strategy, but not everything was seen: x",
        ),
        (examination(unseen=["x"]), True, ""),
    ],
)
def test_the_fixture_accepts_only_a_clean_bill(told, partly, reason):
    said = pytest_plugin.refusal(told, partly)
    assert said.endswith(reason) and bool(said) == bool(reason)


def test_importing_the_plugin_costs_nothing():
    code = "import strategy_clinic.examiner.pytest_plugin, sys; print(*sys.modules)"
    places = os.environ | {"PYTHONPATH": str(ROOT / "helpers")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=places, capture_output=True, text=True, check=True
    )
    ours = {name for name in done.stdout.split() if name.startswith("strategy_clinic.")}
    assert ours == {
        "strategy_clinic.base",
        "strategy_clinic.base.public_api",
        "strategy_clinic.examiner",
        "strategy_clinic.examiner.pytest_plugin",
    }


def test_findings_are_true_and_shown_in_one_line():
    assert not in_process.Findings()
    assert repr(in_process.Findings()) == "<nothing found>"
    partly = in_process.Findings(examination(unseen=["x"]))
    assert (repr(partly), partly.unseen) == ("<nothing found, but not everything was seen>", ["x"])
    findings = in_process.Findings(examination(finding()))
    assert findings
    assert repr(findings) == "</program/train.py:12  fm05  no checkpoint holds it>"
