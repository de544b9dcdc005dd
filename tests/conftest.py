import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.base import files
from helpers.switches import setups
from helpers.triage import known

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def tensorflow():
    """What the first cell of every notebook does: Keras 3, and the CPU split before TensorFlow is up."""
    setups.enter(setups.Setup("default", 1))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A copy of what the laws speak about, to be broken; helpers itself is the one under test."""
    for name in ("notebooks", "helpers", "tests"):
        shutil.copytree(
            ROOT / name,
            tmp_path / name,
            ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"),
        )
    for name in ("README.md", "TEACHING.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.setattr(files, "ROOT", tmp_path)
    forget()
    yield tmp_path
    forget()


def forget():
    """What triage has read before an edit."""
    known.declared_modes.cache_clear()
    known.wordings.cache_clear()


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The book, built as `make book` builds it: a warning is an error."""
    pytest.importorskip(
        "myst_nb", reason="no myst-nb here; the book needs: pip install -e '.[book]'"
    )
    pytest.importorskip("furo", reason="no furo here; the book needs: pip install -e '.[book]'")
    folder = tmp_path_factory.mktemp("book")
    done = build_book(ROOT / "book", folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder / "html"


def build_book(source: Path, folder: Path):
    build = ["-m", "sphinx", "-qW", "--keep-going", "-d", folder / "read", source, folder / "html"]
    given = {"capture_output": True, "text": True, "cwd": source.parent}  # whose helpers it uses
    return subprocess.run([sys.executable, *build], **given)


def changed(path: Path, old: str, new: str, count: int = -1):
    """Edits a file; an edit that changes nothing would make its test worthless."""
    text = path.read_text()
    assert old in text, f"{old!r} is not in {path.name}"
    path.write_text(text.replace(old, new, count))
    return path
