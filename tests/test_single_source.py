"""One source of versions: what environment.yml, binder/ and the lock say follows from pyproject.toml."""

import re
import tomllib

import pytest
from conftest import ROOT, changed
from strategy_clinic.base import files, project


def names(lines: str) -> dict[str, str]:
    """Name and version of each line of a lock."""
    return {
        line.split("==")[0]: line.split("==")[1].split(" ")[0]
        for line in lines.splitlines()
        if "==" in line and not line.startswith("#")
    }


def drifted(root) -> list[str]:
    wanted_text = {
        root / path.relative_to(files.ROOT): text for path, text in project.derived().items()
    }
    problems = [path.name for path, text in wanted_text.items() if path.read_text() != text]
    lock, binder = (
        names((root / "requirements.lock").read_text()),
        names((root / "binder" / "requirements.txt").read_text()),
    )
    declared = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    problems += [f"binder: {name}" for name, version in binder.items() if lock.get(name) != version]
    problems += [f"binder lacks {name}" for name in plain(declared["dependencies"]) - set(binder)]
    wanted = plain(declared["dependencies"]) | plain(declared["optional-dependencies"]["test"])
    return problems + [f"lock lacks {name}" for name in wanted - set(lock)]


def plain(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w-]+", each).group(0).lower().replace("_", "-") for each in requirements}


def test_nothing_has_drifted():
    assert drifted(ROOT) == []


def test_the_lock_names_no_registry():
    for name in ("requirements.lock", "binder/requirements.txt", "environment.yml"):
        assert "://" not in (ROOT / name).read_text()


@pytest.mark.parametrize(
    "name, old, new",
    [
        ("environment.yml", "papermill>=2.6", "papermill>=2.5"),
        ("binder/runtime.txt", "3.11", "3.12"),
        ("binder/requirements.txt", "papermill==2", "papermill==1"),
        ("requirements.lock", "nbval==", "nbvalue=="),
    ],
)
def test_drift_is_found(tmp_path, name, old, new):
    (tmp_path / "binder").mkdir()
    for path in (
        "environment.yml",
        "requirements.lock",
        "pyproject.toml",
        "binder/requirements.txt",
        "binder/runtime.txt",
    ):
        (tmp_path / path).write_text((ROOT / path).read_text())
    assert drifted(tmp_path) == []
    changed(tmp_path / name, old, new)
    assert drifted(tmp_path) != []
