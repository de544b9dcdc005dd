"""Where triage answers: the command, the field in a notebook, and the line below an exception."""

import html
import io
import json
import os
import subprocess
import sys
import traceback

import pytest
import strategy_clinic
from conftest import ROOT
from error_samples import ERRORS, OF_NO_MODE
from IPython.core.interactiveshell import InteractiveShell
from strategy_clinic import cli
from strategy_clinic.base.errors import UserError
from strategy_clinic.triage import answer_text, classify, exception_text, widget

# The command


def run(*arguments, text=b""):
    return subprocess.run(
        [sys.executable, "-m", "strategy_clinic", "triage", *arguments],
        cwd=ROOT,
        input=text,
        capture_output=True,
    )


@pytest.mark.slow
def test_the_command_prints_mode_reason_notebook_and_fix():
    done = run(text=ERRORS[4][1].encode())
    said = done.stdout.decode()
    assert done.returncode == 0 and done.stderr == b""
    assert said.startswith("fm04 weights_path_refused (0.") and "must end in" in said
    assert "fix: end the path in `.weights.h5`" in said
    assert "notebooks/fm04_weights_path_refused.ipynb" in said


@pytest.mark.slow
def test_none_is_an_answer_too():
    done = run("-", text=OF_NO_MODE[0].encode())
    assert done.returncode == 0
    assert b"none of the modes" in done.stdout and b"out of memory" in done.stdout


def test_json_has_the_agreed_form(tmp_path):
    path = tmp_path / "error.txt"
    path.write_text(ERRORS[6][1], encoding="utf-16")
    found = json.loads(run("--json", str(path)).stdout)
    assert set(found) == {"mode", "confidence", "candidates"} and found["mode"] == "fm06"
    assert 0.8 < found["confidence"] <= 1
    assert set(found["candidates"][0]) == {"mode", "score", "because"}


@pytest.mark.slow
def test_jsonl_answers_line_by_line():
    reports = [{"id": number, "text": text} for number, (_, text) in enumerate(ERRORS)]
    done = run("--jsonl", text="\n".join(map(json.dumps, reports)).encode())
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["id"] for each in answers] == list(range(len(ERRORS)))
    assert [each["mode"] for each in answers] == [mode for mode, _ in ERRORS]


@pytest.mark.parametrize(
    "line", ["no json", "[]", '{"id": 1}', '{"text": "x"}', '{"id": 1, "text": 2}', "7"]
)
def test_what_is_no_report_is_refused(line, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line.encode())))
    assert cli.main(["triage", "--jsonl"]) == 2
    assert capsys.readouterr().err.startswith("clinic: Line 1 is not a JSON object")


def test_what_cannot_be_read_is_one_sentence(tmp_path, capsys):
    assert cli.main(["triage", str(tmp_path / "absent.txt")]) == 2
    assert cli.main(["triage", str(tmp_path)]) == 2
    assert cli.main(["triage", "a", "b"]) == 2
    assert capsys.readouterr().err.count("\n") == 3
    assert cli.main(["triage", os.devnull]) == 2
    assert answer_text.PASTE in capsys.readouterr().err


def test_it_needs_no_tensorflow():
    loaded = "import sys; from strategy_clinic import cli; cli.main(['triage', '/dev/null']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True)
    assert not {"tensorflow", "keras", "nbformat", "ipywidgets"} & set(done.stdout.split())


def test_what_a_page_shows_is_escaped():
    evil = "<script>alert(1)</script>"
    text = f'  File "{evil}.py", line 3, in {evil}\nKey {evil}<img src=x onerror=alert(2)> not found in checkpoint'
    for each in (text, html.escape(text), html.escape(html.escape(text))):
        page = answer_text.card(classify.triage(each))
        shown = page.split("</style>")[1]
        assert "data-clinic-mode='fm06'" in shown and "not found in checkpoint" in shown
        assert "<script" not in shown and "<img" not in shown


def test_no_sign_that_steers_a_terminal_is_printed():
    said = answer_text.lines_of(
        classify.triage("Key \x07\x9b31m\x1b[2J\x00x not found in checkpoint")
    )
    assert "fm06" in said[0] and all(line.isprintable() for line in said)


# In a notebook


def test_the_box_shows_a_card_with_a_link(capsys):
    field, button, shown = widget.box()
    assert field.description and field.tooltip and button.tooltip and shown.value == ""
    field.value = ERRORS[6][1]
    button.click()
    assert (
        "href='fm06_architecture_changed.ipynb'" in shown.value and "role='status'" in shown.value
    )
    field.value = OF_NO_MODE[0]
    button.click()
    assert "none of the modes" in shown.value and "href" not in shown.value
    field.value = "loss twice as big with 2 gpus"
    button.click()
    assert "href='fm37_loss_scaled_per_replica.ipynb'" in shown.value
    field.value = " \n"
    button.click()
    assert answer_text.PASTE in shown.value and "none" not in shown.value.split("</style>")[1]


FAILING = "raise ValueError('The filename must end in `.weights.h5`. Received: filepath=x')"


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    return InteractiveShell()


def told(shell, capsys, code: str) -> str:
    shell.run_cell(code)
    return capsys.readouterr().out


def test_an_uncaught_exception_ends_with_the_line_that_names_its_mode(shell, capsys):
    before = told(shell, capsys, FAILING)
    shell.run_line_magic("load_ext", "strategy_clinic")
    after = told(shell, capsys, FAILING)
    assert "fm04" not in before and len(before) > 100
    assert after.startswith(before) and after != before
    line = after.removeprefix(before)
    assert line.count("\n") == 1 and "notebooks/fm04_weights_path_refused.ipynb" in line
    assert told(shell, capsys, "1 / 0") == told(shell, capsys, "1 / 0")
    assert "fm" not in told(shell, capsys, "1 / 0").split("ZeroDivisionError")[-1]
    assert told(shell, capsys, "print('well')") == "well\n"
    shell.run_line_magic("unload_ext", "strategy_clinic")
    assert told(shell, capsys, FAILING) == before


@pytest.mark.parametrize("broken", [RuntimeError("boom"), UserError("no"), RecursionError()])
def test_a_crash_of_triage_is_logged_and_never_hides_the_error(
    shell, capsys, caplog, monkeypatch, broken
):
    def crash(*_):
        raise broken

    before = told(shell, capsys, FAILING)
    strategy_clinic.load_ipython_extension(shell)
    monkeypatch.setattr(classify, "triage", crash)
    after = told(shell, capsys, FAILING)
    assert after == before and "must end in" in after
    assert [record.getMessage() for record in caplog.records] == [
        f"Triage cannot say which mode this error is of: {broken!r}"
    ]


def test_an_extension_that_is_loaded_twice_names_the_mode_once(shell, capsys):
    for _ in range(2):
        strategy_clinic.load_ipython_extension(shell)
    assert told(shell, capsys, FAILING).count("fm04_weights_path_refused.ipynb") == 1


def test_the_line_names_a_mode_of_an_error_that_was_caught_on_the_way(shell, capsys):
    strategy_clinic.load_ipython_extension(shell)
    code = f"try:\n    {FAILING}\nexcept ValueError as error:\n    raise RuntimeError('in my code') from error"
    assert "fm04 weights_path_refused" in told(shell, capsys, code)


RAGGED = """
import numpy as np
things = [np.ones((2, 2)), np.ones(3)]
np.save("things.npy", things)
"""


def test_what_the_names_on_the_last_line_stand_for_is_evidence(
    shell, capsys, tmp_path, monkeypatch
):
    """No word of this error says that an array was made of a list of weights."""
    monkeypatch.chdir(tmp_path)
    strategy_clinic.load_ipython_extension(shell)
    assert "notebooks/fm28_ragged_weights_file.ipynb" in told(shell, capsys, RAGGED)
    with pytest.raises(ValueError) as caught:
        exec(RAGGED)
    assert classify.triage("".join(traceback.format_exception(caught.value))).mode is None


def test_of_variables_the_types_are_told_and_no_values(shell):
    secret, names = "hunter2", [1, "a"]
    with pytest.raises(ZeroDivisionError) as caught:
        print(secret, names, 1 / 0)
    said = exception_text.text_of(caught.value)
    assert "secret is str" in said and "names is a list of int and str" in said
    assert "hunter2" not in said and said.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.slow
def test_reports_can_be_scored(tmp_path):
    path = tmp_path / "reports.jsonl"
    rows = [{"id": 1, "label": "FM04", "text": ERRORS[4][1], "source": "a/b#1"}]
    rows += [
        {"id": 2, "label": "none", "text": ERRORS[6][1]},
        {"id": 3, "label": "none", "text": ""},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    score = ROOT / "tools" / "score_triage.py"
    done = subprocess.run(
        [sys.executable, score, path],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": ""},
    )
    assert "right mode named: 1 of 1" in done.stdout and "one is named: 1 of 2" in done.stdout
