"""What `make lab` does before it installs anything: which Pythons it takes, and what becomes of an environment."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from strategy_clinic.base import project

# A Python of this version that makes environments of its kind, or cannot.
STAND_IN = """#!/bin/sh
if [ "$1" = -c ]; then echo {version}; exit; fi
mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && exit {status}
"""


def python(folder: Path, version: str, status: int = 0) -> Path:
    path = folder / f"python{version}"
    path.write_text(STAND_IN.format(version=version, status=status))
    path.chmod(0o755)
    return path


def make(python: Path | str, environment: Path) -> subprocess.CompletedProcess:
    command = [ROOT / "tools" / "new_environment", python, environment]
    return subprocess.run(command, capture_output=True, text=True)


def version_of(environment: Path) -> str:
    asked = [environment / "bin" / "python", "-c", ""]
    return subprocess.run(asked, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_every_supported_python_makes_one(tmp_path, version):
    done = make(python(tmp_path, version), tmp_path / "env")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert version_of(tmp_path / "env") == version


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.10", "3.14", "4.11", None])
def test_any_other_is_refused_in_one_sentence_before_anything_is_made(tmp_path, version):
    given = python(tmp_path, version) if version else "no-such-python"
    done = make(given, tmp_path / "env")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"You need Python {project.python_versions()}, and {given} is ")
    assert (f"is Python {version};" if version else "is not here;") in done.stderr
    assert "make lab PYTHON=python3.13" in done.stderr
    assert not (tmp_path / "env").exists()


@pytest.mark.parametrize("version", ["3.10", "3.14"])
def test_one_of_another_version_is_replaced(tmp_path, version):
    made = python(tmp_path, "3.12")
    (tmp_path / "env" / "bin").mkdir(parents=True)
    python(tmp_path, version).rename(tmp_path / "env" / "bin" / "python")
    (tmp_path / "env" / "lab").touch()  # else make would take it for a whole one
    done = make(made, tmp_path / "env")
    assert f"has Python {version}: it is made again with Python 3.12." in done.stdout
    assert version_of(tmp_path / "env") == "3.12" and not (tmp_path / "env" / "lab").exists()


def test_one_whose_python_is_gone_is_replaced(tmp_path):
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "bin" / "python").symlink_to(tmp_path / "gone")
    assert make(python(tmp_path, "3.11"), tmp_path / "env").returncode == 0
    assert version_of(tmp_path / "env") == "3.11"


def test_nothing_is_replaced_while_no_python_can_take_its_place(tmp_path):
    (tmp_path / "env" / "bin").mkdir(parents=True)
    python(tmp_path, "3.10").rename(tmp_path / "env" / "bin" / "python")
    assert make(python(tmp_path, "3.14"), tmp_path / "env").returncode == 1
    assert version_of(tmp_path / "env") == "3.10"


def test_a_supported_one_is_left_as_it_is(tmp_path):
    assert make(python(tmp_path, "3.11"), tmp_path / "env").returncode == 0
    (tmp_path / "env" / "lab").touch()
    assert make("no-such-python", tmp_path / "env").returncode == 0
    assert (tmp_path / "env" / "lab").exists()


def test_half_an_environment_is_not_left(tmp_path):
    assert make(python(tmp_path, "3.11", status=1), tmp_path / "env").returncode == 1
    assert not (tmp_path / "env").exists()


def test_make_lab_asks_first_and_says_what_it_installs(tmp_path):
    for name in ("Makefile", "pyproject.toml", "requirements.lock", "binder", "tools"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, tmp_path / name)
    refused = make_lab(tmp_path, python(tmp_path, "3.10"))
    assert refused.returncode and refused.stdout == "" and not (tmp_path / ".venv").exists()
    assert refused.stderr.startswith("You need Python 3.11 to 3.13, and ")
    begun = make_lab(tmp_path, python(tmp_path, "3.12"))  # which has no pip
    assert "Installing TensorFlow and JupyterLab into .venv, once: about 2.5 GB" in begun.stdout
    assert begun.stdout.count("\n") == 1, "no command of make's own is shown"


def make_lab(folder: Path, python: Path) -> subprocess.CompletedProcess:
    command = ["make", "lab", f"PYTHON={python}"]
    # The tests are run by make, too, which tells the one that it starts what it was asked.
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(command, cwd=folder, env=outside, capture_output=True, text=True)
