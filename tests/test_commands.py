"""The two ways to run notebooks headless, good and bad input alike. Kernels are real; nothing is mocked."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import papermill
import pytest
from conftest import ROOT, changed
from papermill.exceptions import PapermillExecutionError

from helpers import cli, render, runs, sources
from helpers.refusals import Refused

NOTEBOOK = ROOT / "notebooks" / "fm25_load_outside_scope.ipynb"

BAD = [
    (["run", "fm25", "--strategy", "mirorred"], ["'mirorred'", "Did you mean 'mirrored'?"]),
    (["run", "fm25", "--save-format", "pickle"], ["'pickle'", "'checkpoint'"]),
    (["run", "fm25", "--devices", "0"], ["0", "1, 2, 4, 8"]),
    (["run", "fm25", "--devices", "-1"], ["-1"]),
    (["run", "fm25", "--devices", "3"], ["3", "1, 2, 4, 8"]),
    (["run", "fm25", "--devices", "two"], ["'two'", "1, 2, 4, 8"]),
    (["run", "fm25", "--devices", "1,two"], ["'two'"]),
    (["run", "fm25", "--devices", ""], ["''"]),
    (["run", "fm25", "--keras", "4"], ["4", "2, 3"]),
    (["run", "fm25", "--formt", "keras"], ["--formt", "--save-format"]),
    (["run", "fm99"], ["'fm99'", "fm25"]),
    (["run", "00_start_here"], ["'00_start_here'", "fm25"]),
    (["run"], ["modes"]),
    (["render", "fm99"], ["'fm99'", "fm25"]),
    (["rnu"], ["'rnu'", "'run'"]),
    ([], ["command"]),
]


@pytest.mark.parametrize("arguments, expected", BAD, ids=lambda value: " ".join(value))
def test_bad_input_is_one_sentence_and_status_2(arguments, expected, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and all(words in said for words in expected)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["no notebook", '{"cells": 3}', "", "{}"])
def test_what_is_no_notebook_is_refused(text, tmp_path, capsys):
    path = tmp_path / "fm25_notes.ipynb"
    path.write_text(text)
    assert cli.main(["run", str(path), "-o", str(tmp_path / "out")]) == 2
    assert cli.main(["render", "--pull", str(path)]) == 2
    assert cli.main(["render", "--pull", str(tmp_path / "absent.ipynb")]) == 2
    said = capsys.readouterr().err
    assert said.count("is not a notebook") == 2 and said.count("There is no file") == 1
    assert list(tmp_path.iterdir()) == [path]


def test_an_unwritable_folder_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    assert cli.main(["run", "fm25", "-o", str(tmp_path / "file" / "out")]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_command_itself_says_it_without_a_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "helpers", "run", "fm99"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr and done.stdout == ""


def test_a_grid_runs_and_is_kept(tmp_path, capsys):
    arguments = [
        "run",
        "fm25",
        "--strategy",
        "mirrored",
        "--devices",
        "1,2",
        "--save-format",
        "h5",
        "-o",
        str(tmp_path),
    ]
    assert cli.main(arguments) == 0
    lines = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    assert [(line["devices"], line["broken"], line["fixed"], line["agrees"]) for line in lines] == [
        (1, "works", "works", True),
        (2, "silent", "works", True),
    ]
    assert {line["evidence"] for line in lines} == {"executed"}
    assert lines[1]["claims"] == {
        "004-C1": "true",
        "004-C2": "true",
        "004-C5": "true",
        "003-C28": "true",
    }
    assert all((tmp_path / line["notebook"]).exists() for line in lines)
    assert not list(tmp_path.glob("*.part*"))
    assert (
        "[2/2] fm25 mirrored x2, saved as h5, Keras 3: broken silent, fixed works"
        in capsys.readouterr().out
    )


def test_a_run_that_disagrees_is_status_1(tmp_path, capsys):
    path = tmp_path / NOTEBOOK.name
    path.write_text(NOTEBOOK.read_text())
    changed(
        path,
        "with MODE.reproduces(setup):\\n    broken(setup)",
        "with MODE.reproduces(setup):\\n    pass",
    )
    assert cli.main(["run", str(path), "-o", str(tmp_path / "out")]) == 1
    line = json.loads((tmp_path / "out" / "verdicts.jsonl").read_text())
    assert line["agrees"] is False and "did not reproduce" in line["says"]
    assert "DISAGREES" in capsys.readouterr().out


def run_papermill(tmp_path: Path, **parameters):
    return papermill.execute_notebook(
        NOTEBOOK, tmp_path / "out.ipynb", parameters, **render.PAPERMILL
    )


def test_plain_papermill_runs(tmp_path):
    executed = run_papermill(tmp_path, devices=4, save_format="h5")
    steps = {report["step"]: report for report in render.reports(executed) if "step" in report}
    assert steps["setup"]["parameters"] == {
        "strategy": "mirrored",
        "devices": 4,
        "save_format": "h5",
        "keras": 3,
    }
    assert steps["reproduced"]["verdict"]["outcome"] == "silent"


@pytest.mark.parametrize(
    "parameters, expected",
    [
        ({"strategy": "mirorred"}, "Did you mean 'mirrored'?"),
        ({"devcies": 4}, "parameter name = 'devcies' is not known here"),
        ({"epochs": 4}, "parameter name = 'epochs' is not known here"),
        ({"keras": 4}, "valid: 2, 3"),
        ({"devices": "two"}, "'two'"),
    ],
)
def test_plain_papermill_fails_when_it_should(tmp_path, parameters, expected):
    with pytest.raises(PapermillExecutionError) as failed:
        run_papermill(tmp_path, **parameters)
    assert expected in str(failed.value.evalue)


def test_rendering_twice_gives_the_same_bytes(project):
    """Pictures included; on one machine, since a picture may differ with the version that drew it."""
    paths = [project / "notebooks" / "fm01_host_read_in_replica.ipynb", project / "README.md"]
    rendered = []
    for _ in range(2):
        paths[0].unlink()
        render.render_all(["fm01"])
        rendered.append([path.read_bytes() for path in paths])
    assert rendered[0] == rendered[1]


def test_a_new_mode_is_one_file(project):
    """Rendering it also brings catalog, README and the map in the first notebook up to date."""
    first = (project / "notebooks" / "fm25_load_outside_scope.py").read_text()
    second = first.replace('id="fm25"', 'id="fm26"').replace("# # FM25.", "# # FM26.")
    second = second.replace('slug="load_outside_scope"', 'slug="trial_mode"')
    (project / "notebooks" / "fm26_trial_mode.py").write_text(second)
    assert any("fm26" in problem for problem in render.check())
    render.render_all(["fm26"])
    assert render.check() == []
    assert "fm26_trial_mode.ipynb" in (project / "README.md").read_text()
    assert "fm26_trial_mode.ipynb" in (project / "notebooks" / "00_start_here.ipynb").read_text()


def test_pull_brings_back_what_was_rendered(project):
    for source in sources.sources():
        before = source.read_text()
        sources.pull(source.with_suffix(".ipynb"))
        assert source.read_text() == before


def test_pull_takes_an_edit_made_in_jupyter(project):
    notebook = project / "notebooks" / NOTEBOOK.name
    changed(notebook, "You believe that a model", "You are sure that a model")
    sources.pull(notebook)
    assert "# You are sure that a model" in notebook.with_suffix(".py").read_text()
    assert any("run: clinic render fm25" in problem for problem in render.check(["fm25"]))


def test_an_unrendered_mode_says_what_to_run(project):
    (project / "notebooks" / NOTEBOOK.name).unlink()
    with pytest.raises(Refused, match="clinic render fm25"):
        runs.target("fm25")


def copy_with(tmp_path: Path, cell: str) -> Path:
    """The notebook with one line put in front of its experiment."""
    path = tmp_path / NOTEBOOK.name
    path.write_text(NOTEBOOK.read_text())
    return changed(
        path, "with MODE.reproduces(setup):\\n", f"{cell}\\nwith MODE.reproduces(setup):\\n"
    )


def test_a_dying_kernel_is_a_disagreement_and_the_rest_goes_on(tmp_path):
    path = copy_with(tmp_path, "import os; os._exit(3)")
    assert cli.main(["run", str(path), "fm25", "--devices", "1", "-o", str(tmp_path / "out")]) == 1
    lines = [
        json.loads(line) for line in (tmp_path / "out" / "verdicts.jsonl").read_text().splitlines()
    ]
    assert [(line["agrees"], line["says"]) for line in lines] == [
        (False, "the kernel died"),
        (True, lines[1]["says"]),
    ]


def test_a_stopped_run_leaves_nothing_half_written(tmp_path):
    path = copy_with(tmp_path, "import time; time.sleep(600)")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "helpers", "run", str(path), "--devices", "1", "-o", str(out)]
    running = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not list(out.glob("*.part.ipynb")) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert list(out.glob("*.part.ipynb"))
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=60)[1]
    assert running.returncode == 130 and "Traceback" not in said
    assert list(out.iterdir()) == []
