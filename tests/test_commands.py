"""The two ways to run notebooks headless, good and bad input alike. Kernels are real; nothing is mocked."""

import subprocess
import sys

import pytest
from conftest import ROOT, changed
from strategy_clinic import cli
from strategy_clinic.base.errors import UserError
from strategy_clinic.modes import registry
from strategy_clinic.rendering import mode_notebooks, render, sources

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
    (["compile", "fm24", "--tpu", "v7"], ["'v7'", "'v6e-8'"]),
    (["compile", "fm99"], ["'fm99'", "fm25"]),
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
        [sys.executable, "-m", "strategy_clinic", "run", "fm99"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr and done.stdout == ""


@pytest.mark.slow
def test_rendering_twice_gives_the_same_bytes(project):
    """Pictures included; on one machine, since a picture may differ with the version that drew it."""
    paths = [
        project / "notebooks" / "fm17_tpu_not_initialised.ipynb",
        project / "README.md",
    ]
    rendered = []
    for _ in range(2):
        paths[0].unlink()
        render.render_all(["fm17"])
        rendered.append([path.read_bytes() for path in paths])
    assert rendered[0] == rendered[1]


@pytest.mark.slow
def test_a_new_page_is_one_file(project):
    """Rendering it also brings the README and the map in the first notebook up to date."""
    modes = project / "helpers/strategy_clinic/modes"
    first = (modes / "fm17_tpu_not_initialised/page.py").read_text()
    second = first.replace('id="fm17"', 'id="fm98"').replace("# # FM17.", "# # FM98.")
    second = second.replace('slug="tpu_not_initialised"', 'slug="trial_mode"')
    (modes / "fm98_trial_mode").mkdir()
    (modes / "fm98_trial_mode/page.py").write_text(second)
    assert any("fm98" in problem for problem in render.stale())
    render.render_all(["fm98"])
    assert render.stale() == []
    assert "fm98_trial_mode.ipynb" in (project / "README.md").read_text()
    assert "fm98_trial_mode.ipynb" in (project / "notebooks" / "00_start_here.ipynb").read_text()


def test_pull_brings_back_what_was_rendered(project):
    for source in sources.sources():
        before = source.read_text()
        sources.pull(sources.notebook_path(source))
        assert source.read_text() == before


def test_pull_takes_an_edit_made_in_jupyter(project):
    notebook = project / "notebooks" / NOTEBOOK.name
    changed(notebook, "You believe that a model", "You are sure that a model")
    sources.pull(notebook)
    source = sources.sources(["fm25"])[0]
    assert "# You are sure that a model" in source.read_text()
    assert registry.read_mode(source), "the declaration, which is on no page, is kept"
    assert any("run: clinic render fm25" in problem for problem in render.stale(["fm25"]))


def test_an_unrendered_mode_says_what_to_run(project):
    (project / "notebooks" / NOTEBOOK.name).unlink()
    with pytest.raises(UserError, match="clinic render fm25"):
        mode_notebooks.mode_notebooks(["fm25"])
