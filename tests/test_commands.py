"""The two ways to run notebooks headless, good and bad input alike. Kernels are real; nothing is mocked."""

import subprocess
import sys
import tomllib

import pytest
from conftest import ROOT, changed
from strategy_clinic import cli
from strategy_clinic.base.errors import UserError
from strategy_clinic.modes import registry
from strategy_clinic.processes import python_process
from strategy_clinic.programs.text import SUBJECTS, problems
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


def test_a_copy_with_other_cells_is_named_and_one_that_was_only_run_is_not(tmp_path, capsys):
    """Each stays as it is, and what is gone is copied again."""
    assert cli.main(["notebooks", str(tmp_path)]) == 0
    ran, edited, broken, gone = (
        max(tmp_path.glob(f"{mode}_*")) for mode in ("fm01", "fm05", "fm37", "fm25")
    )
    changed(ran, '"execution_count": 1', '"execution_count": 7', 1)
    changed(edited, "import tensorflow as tf", "import tensorflow as tensorflow", 1)
    broken.write_text("mine")
    gone.unlink()
    before = {path: path.read_text() for path in (ran, edited, broken)}
    capsys.readouterr()
    assert cli.main(["notebooks", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert ", 1 of them new" in said and gone.exists()
    assert f"left as they are (delete one to get it again): {edited.name}, {broken.name}\n" in said
    assert said.endswith(f"now run: jupyter lab {tmp_path / mode_notebooks.START}\n")
    assert {path: path.read_text() for path in before} == before


def test_jupyterlab_is_opened_on_the_copies_and_its_words_are_no_shell_s(tmp_path, monkeypatch):
    become, folder = [], tmp_path / "a folder; echo"
    monkeypatch.setattr(python_process.beside, "become", become.append)
    cli.main(["notebooks", str(folder), "--open"])
    (command,) = become
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert command[-1] == str(folder / mode_notebooks.START) and "--ip=127.0.0.1" in command


def test_an_unwritable_folder_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    assert cli.main(["run", "fm25", "-o", str(tmp_path / "file" / "out")]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.slow
def test_the_command_itself_says_it_without_a_traceback(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "strategy_clinic", "run", "fm99"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr and done.stdout == ""


@pytest.mark.slow
@pytest.mark.thorough
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


# A new mode


def test_new_writes_the_folder_of_a_mode(project, capsys):
    assert cli.main(["new", "fm98", "trial_mode"]) == 0
    folder = project / "helpers" / "strategy_clinic" / "modes" / "fm98_trial_mode"
    written = [path.name for path in sorted(folder.iterdir())]
    programs = [f"{subject}.py" for subject in SUBJECTS]
    assert written == sorted([*programs, "hints.toml", "page.py", "rule.py", "words.toml"])
    assert problems(*[(folder / name).read_text() for name in programs[:2]]) == []
    assert "clinic render fm98" in capsys.readouterr().out
    mode = registry.mode_by_id("fm98")
    assert (mode.id, mode.slug) == ("fm98", "trial_mode")
    assert tomllib.loads((folder / "words.toml").read_text())["wording"]


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (["new", "fm5", "trial_mode"], "'fm5' is not an id"),
        (["new", "47", "trial_mode"], "'47' is not an id"),
        (["new", "fm98", "Trial Mode"], "'Trial Mode' is not a slug"),
        (["new", "fm98", "../trial"], "'../trial' is not a slug"),
        (["new", "fm05", "trial_mode"], "there is 'fm05_untracked_variable'"),
        (["new", "fm98", "untracked_variable"], "there is 'fm05_untracked_variable'"),
    ],
)
def test_new_refuses_names_that_cannot_be_used(project, arguments, reason, capsys):
    before = files_below(project / "helpers")
    assert cli.main(arguments) == 2
    error = capsys.readouterr().err
    assert reason in error and error.count("\n") == 1
    assert files_below(project / "helpers") == before


def files_below(folder) -> set:
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


@pytest.mark.slow
def test_a_new_mode_is_one_folder_and_one_command(project):
    """Rendering it also brings the map in the first notebook up to date."""
    assert cli.main(["new", "fm98", "trial_mode"]) == 0
    assert any("fm98" in problem for problem in render.stale())
    assert cli.main(["render", "fm98"]) == 0
    assert list(render.stale()) == []
    assert "fm98_trial_mode.ipynb" in (project / "notebooks" / "00_start_here.ipynb").read_text()


# Errors and logging


@pytest.mark.parametrize(
    "error, sentence",
    [
        (TimeoutError(), "clinic: TimeoutError\n"),
        (OSError("the socket is closed"), "clinic: the socket is closed\n"),
        (ConnectionResetError(104, "Connection reset"), "clinic: Connection reset\n"),
        (FileNotFoundError(2, "No such file", "a.txt"), "clinic: No such file: 'a.txt'\n"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_of_the_system_is_one_sentence(error, sentence, monkeypatch, capsys):
    def fail(options):
        raise error

    monkeypatch.setitem(cli.COMMANDS, "atlas", ("fails", fail, cli.COMMANDS["atlas"][2]))
    assert cli.main(["atlas", "page.html"]) == 2
    assert capsys.readouterr().err == sentence


def test_a_program_error_is_not_hidden(monkeypatch):
    def fail(options):
        raise ModuleNotFoundError("No module named 'nowhere'", name="nowhere")

    monkeypatch.setitem(cli.COMMANDS, "atlas", ("fails", fail, cli.COMMANDS["atlas"][2]))
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        cli.main(["atlas", "page.html"])


@pytest.mark.slow
@pytest.mark.parametrize("option, logged", [([], False), (["-v"], True), (["--verbose"], True)])
def test_nothing_is_logged_without_verbose(option, logged):
    command = [sys.executable, "-m", "strategy_clinic", "triage", *option]
    done = subprocess.run(command, input="no error", cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0
    assert ("strategy_clinic.cli: version " in done.stderr) is logged
    assert logged or done.stderr == ""


# Edits in Jupyter


@pytest.mark.slow
def test_pull_brings_back_what_was_rendered(project):
    for source in sources.sources():
        before = source.read_text()
        sources.pull(sources.notebook_path(source))
        assert source.read_text() == before


def test_pull_takes_an_edit_made_in_jupyter(project):
    notebook = project / "notebooks" / NOTEBOOK.name
    changed(notebook, "## Why\\n", "## Why\\n\\nOne sentence more.\\n")
    sources.pull(notebook)
    source = sources.sources(["fm25"])[0]
    assert "# One sentence more." in source.read_text()
    assert registry.read_mode(source), "the declaration, which is on no page, is kept"
    assert any("run: clinic render fm25" in problem for problem in render.stale(["fm25"]))


def test_an_unrendered_mode_says_what_to_run(project):
    (project / "notebooks" / NOTEBOOK.name).unlink()
    with pytest.raises(UserError, match="clinic render fm25"):
        mode_notebooks.mode_notebooks(["fm25"])
