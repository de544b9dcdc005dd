"""The Dockerfile: its steps run one by one, each with an emptied environment; no image is built here."""

import fnmatch
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from strategy_clinic.base import project

FILE = ROOT / "Dockerfile"
KNOWN = {"FROM", "RUN", "USER", "WORKDIR", "ENV", "COPY", "EXPOSE", "ENTRYPOINT", "CMD"}


def steps(name: str = "") -> list[tuple[str, str]]:
    """Its instructions with their words, all or those of one name."""
    lines = [line for line in FILE.read_text().splitlines() if line and line[0] != "#"]
    found = [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]
    return [each for each in found if name in ("", each[0])]


def ignored() -> list[str]:
    return (ROOT / ".dockerignore").read_text().split()


def is_ignored(path: str) -> bool:
    """Whether docker leaves a path out: a pattern is from the root, and `**/` before it means any folder."""
    parts = [path, *map(str, Path(path).parents)]
    return any(
        fnmatch.fnmatchcase(part, pattern) or fnmatch.fnmatchcase(f"./{part}", f"*{pattern[2:]}")
        if pattern.startswith("**/")
        else fnmatch.fnmatchcase(part, pattern)
        for pattern in ignored()
        for part in parts
    )


def test_it_has_no_instruction_that_these_tests_do_not_know():
    assert {name for name, _ in steps()} == KNOWN and steps()[0][0] == "FROM"


def test_its_python_is_the_one_that_binder_has():
    assert f"python:{project.python_version()}-slim" in steps("FROM")[0][1]


def test_nothing_runs_as_root_but_what_makes_the_user():
    names = [name for name, _ in steps()]
    as_root = [words for name, words in steps()[: names.index("USER")] if name == "RUN"]
    (words,) = as_root
    assert [each.split()[0] for each in words.split(" && ")] == ["useradd", "install"]
    assert steps("USER") == [("USER", "reader")] and words.endswith(steps("WORKDIR")[0][1])


def test_what_is_edited_is_copied_after_the_installation():
    order = [words.split()[-2:] for name, words in steps() if name in ("COPY", "RUN")]
    install, whole = order.index(["-r", "binder/requirements.txt"]), order.index([".", "."])
    assert install < whole < order.index(["binder/postBuild"])


@pytest.mark.parametrize(
    "path",
    [".venv/bin/python", ".venv-3.13/lib/x.py", ".git/HEAD", "my_notebooks/fm01.ipynb"]
    + ["helpers/strategy_clinic/__pycache__/cli.pyc", "site/html/index.html"],
)
def test_what_is_of_this_machine_is_left_out(path):
    assert is_ignored(path)


def repository_files() -> list[str]:
    listed = ["git", "ls-files", "-co", "--exclude-standard"]
    said = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for path in said.splitlines() if (ROOT / path).exists()]


def test_what_is_in_the_repository_is_in_the_container_but_for_its_tests():
    """Binder's builder leaves out the same: see tests/test_binder.py."""
    left_out = {path for path in repository_files() if is_ignored(path)}
    assert left_out == {path for path in repository_files() if path.startswith("tests/")}


def test_what_is_copied_into_the_image_is_small():
    copied = [path for path in repository_files() if not is_ignored(path)]
    assert 1e6 < sum((ROOT / path).stat().st_size for path in copied) < 20e6


WRITES_DOWN = '#!/bin/sh\necho "$(basename "$0") $*" >> {asked}\n'


@pytest.mark.slow
def test_each_step_runs_in_a_fresh_folder_with_an_emptied_environment(tmp_path):
    """pip, useradd, install and Python write down what they are asked; nothing of this machine's variables is there."""
    (tmp_path / "bin").mkdir()
    for name in ("bash", "sh", "basename", "dirname", "mkdir", "cp", "env"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    for name in ("useradd", "install", "pip", "python"):
        path = tmp_path / "bin" / name
        path.write_text(WRITES_DOWN.format(asked=tmp_path / "asked"))
        path.chmod(0o755)
    with (tmp_path / "bin" / "python").open("a") as python:
        python.write(f'[ "$1" = -c ] && echo {tmp_path / "prefix"} || true\n')
    run_all(tmp_path / "work", {"PATH": str(tmp_path / "bin")})
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == [
        "useradd --create-home reader",
        "install --directory --owner=reader /home/reader/clinic",
        "python -m venv /home/reader/venv",
        "pip install --no-cache-dir -r binder/requirements.txt",
        "pip install --no-cache-dir --no-deps -e .",
        "python -m compileall -qq -j 0 helpers",
        "python -m strategy_clinic.forkserver.kernelspec",
        "python -c import sys; print(sys.prefix)",
        f"python -m strategy_clinic.forkserver.beside {' '.join(json.loads(steps('CMD')[0][1]))}",
    ]
    assert (tmp_path / "prefix/share/jupyter/lab/settings/overrides.json").exists()


def run_all(folder: Path, environment: dict[str, str]):
    """Its steps, and then what it starts, in a folder that has only what was copied so far."""
    folder.mkdir()
    for name, words in steps():
        if name == "COPY":
            copy(folder, *words.split()[1:])
        elif name == "RUN":
            subprocess.run(["sh", "-c", words], cwd=folder, env=environment, check=True)
    start = [json.loads(words) for name, words in steps() if name in ("ENTRYPOINT", "CMD")]
    subprocess.run(sum(start, []), cwd=folder, env=environment, check=True)


def copy(folder: Path, source: str, target: str):
    wanted = ["binder", "notebooks", "helpers"] if source == "." else [source]
    for name in wanted:
        assert (ROOT / name).exists()
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored, dirs_exist_ok=True)
        else:
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / target)


def test_what_it_starts_and_opens_is_there():
    (_, entry), (_, command) = steps("ENTRYPOINT") + steps("CMD")
    assert os.access(ROOT / json.loads(entry)[0], os.X_OK)
    assert (ROOT / json.loads(command)[-1]).exists()
    (port,) = [words for _, words in steps("EXPOSE")]
    shown = [FILE, ROOT / "book/how_to/install.md"]
    published = [re.findall(r"-p (\S+)", path.read_text()) for path in shown]
    assert "](Dockerfile)" in (ROOT / "README.md").read_text()
    assert all(each == [f"127.0.0.1:{port}:{port}"] for each in published), "on loopback alone"
