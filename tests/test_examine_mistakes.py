"""What the examiner answers to what cannot be examined, and what it takes along. No TensorFlow."""

import ast
import os
import shutil
import sys
import traceback
import types
from pathlib import Path

import pytest
from strategy_clinic import cli
from strategy_clinic.base import files
from strategy_clinic.base.errors import UserError
from strategy_clinic.examiner.runs import sandbox


@pytest.fixture
def script(tmp_path):
    (tmp_path / "train.py").write_text("print(1)\nprint(2)\n")
    return str(tmp_path / "train.py")


def refusal(capsys, *words):
    assert cli.main(["examine", *words]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    return told[0]


@pytest.mark.parametrize(
    "words, says",
    [
        ([], "Which program?"),
        (["-m"], "Which program?"),
        (["none.py"], "There is no file 'none.py'"),
        (["--python", "no-python", "train.py"], "is no Python"),
        (["--keras", "2,3", "train.py"], "one generation"),
        (["--keras", "4", "train.py"], "valid: 2, 3"),
        (["--devices", "0", "train.py"], "whole numbers from 1 to 8"),
        (["--devices", "two", "train.py"], "whole numbers from 1 to 8"),
        (["--limit", "0", "train.py"], "--limit"),
        (["--json", "none/it.json", "train.py"], "no folder to write 'none/it.json' into"),
        (["--benchmark", "fm99"], "mode = 'fm99' is not known here"),
        (["--benchmark", "fm01", "--keras", "2"], "mode = '--keras' is not known here"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_sentence(words, says, script, capsys, monkeypatch):
    monkeypatch.chdir(os.path.dirname(script))
    assert says in refusal(capsys, *words)


def test_an_interpreter_without_tensorflow(tmp_path, script):
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    program = sandbox.Case(("train.py",), tmp_path, python=str(bare))
    with pytest.raises(UserError, match="has no TensorFlow"):
        sandbox.require_program(program)


def test_an_interpreter_that_the_observer_does_not_suit(tmp_path, script):
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho too old\n")
    other.chmod(0o755)
    place = sandbox.Workplace(sandbox.Case(("train.py",), tmp_path, python=str(other)))
    with place, pytest.raises(UserError, match="cannot start in .*: too old"):
        place.run("watched", 1)


def test_the_observer_suits_the_oldest_python_that_tensorflow_has():
    """TensorFlow 2.18 runs on Python 3.9; what describes a TPU is imported apart."""
    for name in sandbox.OBSERVER_MODULES:
        if name.startswith("examine/") and "tpu" not in name:
            ast.parse((files.PACKAGE / name).read_text(), feature_version=(3, 9))


@pytest.mark.parametrize("name", ["venv", "any name"])
def test_a_virtual_environment_in_the_folder_stays_where_it_is(tmp_path, script, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "large").write_bytes(b"x" * 100)
    (tmp_path / name / "pyvenv.cfg").touch()
    with sandbox.Workplace(sandbox.Case(("train.py",), tmp_path)) as place:
        assert os.listdir(place.copy) == ["train.py"]


def test_a_folder_that_only_bears_the_name_of_an_environment_is_copied(tmp_path, script):
    (tmp_path / "venv").mkdir()
    with sandbox.Workplace(sandbox.Case(("train.py",), tmp_path)) as place:
        assert sorted(os.listdir(place.copy)) == ["train.py", "venv"]


def test_tensorflow_is_looked_for_as_the_program_finds_it(tmp_path, script, monkeypatch):
    """By PYTHONPATH and in a user's own packages too, but not in the folder that one stands in."""
    theirs = tmp_path / "theirs"
    (theirs / "tensorflow").mkdir(parents=True)
    bare = tmp_path / "python"  # which has nothing but what PYTHONPATH and the working folder add
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    program = sandbox.Case(("train.py",), tmp_path, python=str(bare))
    monkeypatch.chdir(theirs)
    with pytest.raises(UserError, match="has no TensorFlow"):
        sandbox.require_tensorflow(program)
    monkeypatch.setenv("PYTHONPATH", str(theirs))
    sandbox.require_tensorflow(program)


def test_a_traceback_is_shown_as_if_nobody_watched():
    from strategy_clinic.observer import main, patching

    def failing():
        raise KeyError("first")

    owner = types.SimpleNamespace(failing=failing)
    patching.hook(owner, "failing")
    try:
        try:
            owner.failing()
        except KeyError as first:
            raise ValueError("second") from first
    except ValueError as error:
        seen = error.__cause__
        assert "watched" in functions_of(seen)
        main.without_us(error)
        assert functions_of(seen) == [functions_of(error)[0], "failing"]
    finally:
        patching.unhook()


def functions_of(error) -> list[str]:
    return [each.name for each in traceback.extract_tb(error.__traceback__)]


def test_a_script_is_run_in_the_copy_wherever_it_was_named_from(tmp_path, script):
    assert sandbox.script_in(tmp_path, script) == "train.py"
    assert sandbox.script_in(tmp_path, "sub/../train.py") == "train.py"
    assert sandbox.script_in(tmp_path / "sub", "../train.py") == str(tmp_path / "train.py")


def test_a_folder_is_copied_with_what_it_reaches(tmp_path, script):
    folder, beside = tmp_path / "program", tmp_path / "data"
    folder.mkdir()
    beside.write_text("numbers")
    (folder / "link").symlink_to("../data")
    os.mkfifo(folder / "pipe")
    with sandbox.Workplace(sandbox.Case(("train.py",), folder)) as place:
        assert (
            (place.copy / "link").read_text() == (place.copy / "../data").read_text() == "numbers"
        )
        assert sorted(os.listdir(place.copy)) == ["link"]


def test_a_folder_that_cannot_be_copied(tmp_path, script, monkeypatch):
    def refused(*_, **__):
        raise shutil.Error([("train.py", "copy", "no permission")])

    monkeypatch.setattr(shutil, "copytree", refused)
    with pytest.raises(UserError, match="cannot be copied, .*: 'train.py' in it: no permission"):
        sandbox.Workplace(sandbox.Case(("train.py",), tmp_path))


def brought_along(name: str) -> set[str]:
    """The modules of the clinic that one of the observer's imports, at its top or inside a function."""
    found, here = set(), Path(name).parent
    for node in ast.walk(ast.parse((files.PACKAGE / name).read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            place = [here, *here.parents][node.level - 1]
            place = place / (node.module or "").replace(".", "/")
            inner = {f"{place / alias.name}.py" for alias in node.names}
            found |= {each for each in inner if (files.PACKAGE / each).is_file()} or {f"{place}.py"}
    return found


def test_the_observer_comes_with_all_that_it_imports():
    wanted = {each for name in sandbox.OBSERVER_MODULES for each in brought_along(name)}
    assert wanted - set(sandbox.OBSERVER_MODULES) == set()
    assert {"switches/tpu.py", "base/refusals.py", "examine/observe/notes.py"} <= wanted


def test_a_folder_that_is_too_large_to_copy(tmp_path, script, monkeypatch):
    monkeypatch.setattr(sandbox, "LARGEST_FOLDER", 10)
    with pytest.raises(UserError, match="examine the program in a folder with only what it needs"):
        sandbox.require_small(tmp_path)


@pytest.mark.parametrize("warm, kept", [(None, "/theirs"), ("/socket", "observer.pyz:/theirs")])
def test_a_program_finds_what_its_reader_finds(tmp_path, monkeypatch, warm, kept):
    monkeypatch.setenv("PYTHONPATH", "/theirs")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    (tmp_path / "theirs").mkdir()
    program = sandbox.Case(("train.py",), tmp_path / "theirs", warm=warm)
    with sandbox.Workplace(program) as place:
        given = place.environment()
    assert given["PYTHONPATH"].endswith(kept) and given["CUDA_VISIBLE_DEVICES"] == "-1"
