"""What `clinic examine` answers to what cannot be examined: one sentence, before anything runs. No TensorFlow."""

import os
import sys

import pytest
from strategy_clinic import cli
from strategy_clinic.base.errors import UserError
from strategy_clinic.examiner.runs import folder, program_spec
from strategy_clinic.examiner.runs.program_spec import ProgramSpec, script_in
from strategy_clinic.examiner.runs.workspace import CopiedFolder


@pytest.fixture
def script(tmp_path):
    (tmp_path / "train.py").write_text("print(1)\nprint(2)\n")
    return str(tmp_path / "train.py")


@pytest.mark.parametrize(
    "words, says",
    [
        ([], "Which program?"),
        (["-m"], "Which program?"),
        (["none.py"], "There is no file 'none.py'"),
        (["--python", "no-python", "train.py"], "is not a Python"),
        (["--keras", "2,3", "train.py"], "one version of Keras"),
        (["--keras", "4", "train.py"], "keras = 4 is not known here; valid: 2, 3."),
        (["--devices", "0", "train.py"], "whole numbers from 1 to 8"),
        (["--devices", "two", "train.py"], "whole numbers from 1 to 8"),
        (["--devices", "2,two", "train.py"], "whole numbers from 1 to 8"),
        (["--limit", "0", "train.py"], "--limit"),
        (["--json", "none/it.json", "train.py"], "no folder to write 'none/it.json' into"),
        (["--benchmark", "fm99"], "mode = 'fm99' is not known here"),
        (["--benchmark", "fm01", "--keras", "2"], "mode = '--keras' is not known here"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_sentence(words, says, script, capsys, monkeypatch):
    monkeypatch.chdir(os.path.dirname(script))
    assert cli.main(["examine", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def python(path, *lines):
    """An interpreter that is a shell script."""
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return str(path)


def test_an_interpreter_without_tensorflow(tmp_path, script):
    bare = python(tmp_path / "python", "exit 1")
    with pytest.raises(UserError, match="has no TensorFlow"):
        ProgramSpec(("train.py",), tmp_path, python=bare).checked()


def test_tensorflow_is_looked_for_as_the_program_finds_it(tmp_path, monkeypatch):
    """By PYTHONPATH and in a user's own packages too, but not in the working folder."""
    theirs = tmp_path / "theirs"
    (theirs / "tensorflow").mkdir(parents=True)
    # It has nothing but what PYTHONPATH and the working folder add.
    bare = python(tmp_path / "python", f'exec "{sys.executable}" -S "$@"')
    monkeypatch.chdir(theirs)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(UserError, match="has no TensorFlow"):
        program_spec.require_tensorflow(bare)
    monkeypatch.setenv("PYTHONPATH", str(theirs))
    program_spec.require_tensorflow(bare)


def test_a_script_is_run_in_the_copy_however_it_was_named(tmp_path, script):
    assert script_in(tmp_path, script) == "train.py"
    assert script_in(tmp_path, "sub/../train.py") == "train.py"
    assert script_in(tmp_path / "sub", "../train.py") == str(tmp_path / "train.py")


@pytest.mark.parametrize(
    "limit, most, says", [("LARGEST_FOLDER", 10, "0 GiB"), ("MOST_FILES", 0, "0 files")]
)
def test_a_folder_that_is_too_large_to_copy(tmp_path, script, monkeypatch, limit, most, says):
    monkeypatch.setattr(folder, limit, most)
    with pytest.raises(UserError, match=f"{says}, and is copied: examine the program in a folder"):
        CopiedFolder.of(tmp_path, tmp_path / "place", "no view is permitted")
    assert not (tmp_path / "place").exists()
