import fcntl
import gc
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from project_copy import RestoredFolder, copy_project
from replayed import examinations  # noqa: F401 - a fixture of every test
from strategy_clinic.base import files
from strategy_clinic.base.quick_imports import without_grammars
from strategy_clinic.examiner.runs import workspace
from strategy_clinic.forkserver import server
from strategy_clinic.modes import groups
from strategy_clinic.processes import python_process
from strategy_clinic.processes.view import NoView
from strategy_clinic.setups import parameters
from strategy_clinic.triage import known_errors, page_messages, report_text, similarity, wordings

with without_grammars():
    from strategy_clinic.rendering import sources

pytest.register_assert_rewrite("law")  # so that a law that fails shows its problems

ROOT = Path(__file__).parents[1]
# Cells that run programs under many setups.
LONG = {"table", "figure"}
TABLE = re.compile(r'^(# %% tags=\["table"\]\n).*?(?=^# %%)', re.MULTILINE | re.DOTALL)
# In the text of a notebook, a change after which the broken program fails as no mode declares.
FAILS_OTHERWISE = '"%%program broken\\n', '"%%program broken\\n1 / 0\\n'
LONGEST = ("test_browser", "test_records", "test_measured_programs")
# It sets an audit hook, which cannot be removed: Python then calls it at each opening of a file, to the end of its worker.
LAST = "test_options_and_files"


def pytest_collection_modifyitems(items):
    """What takes longest begins first, so that no worker is left with it at the end; what slows down others is the last."""
    rank = {stem: place for place, stem in enumerate(LONGEST)} | {LAST: len(LONGEST) + 1}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))


@pytest.fixture(scope="session")
def started():
    """What the first cell of every notebook does: Keras 3, and the CPU split before TensorFlow is up."""
    parameters.prepare_kernel(parameters.Setup("default", 1))


@pytest.fixture
def tensorflow(started):
    """As in a kernel: TensorFlow is ready, and other processes are forked where they can be."""
    python_process.fork_server()


@pytest.fixture
def copied(monkeypatch):
    """On a system that permits no view, as in most containers: the folder of an examined program is copied.

    A folder for temporary files may hold a thousand others, and each copy has links to what is beside it: here fewer.
    """

    def refuse(*_):
        raise NoView("not permitted")

    monkeypatch.setattr(workspace, "View", refuse)
    monkeypatch.setattr("strategy_clinic.examiner.runs.folder.MOST_SIBLINGS", 5)


@pytest.fixture
def short_folder(monkeypatch, tmp_path):
    """A folder for the sockets of a test's own fork servers; their paths must be short.

    What these servers hold does not matter, so they get a TensorFlow that is imported at once: tmp_path / "empty".
    """
    preloaded = [name for name in server.PRELOAD if name.startswith("tensorflow")]
    for name in ("tensorflow", *preloaded):
        module = tmp_path / "empty" / Path(*name.split(".")) / "__init__.py"
        module.parent.mkdir(parents=True)
        module.touch()
    (tmp_path / "empty" / "tensorflow" / "__init__.py").write_text(
        "import logging\n\n\ndef get_logger():\n    return logging.getLogger('tensorflow')\n"
    )
    places = [str(tmp_path / "empty"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, places)))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


def shortened(notebook):
    """Leaves out what takes most of a notebook's time, and what many tests have no need of."""
    for cell in notebook.cells:
        if LONG & {*sources.tags(cell)}:
            cell.source = "pass"
    return notebook


def without_table(page: str) -> str:
    """Leaves out what takes most of a page's time; its figures may define what its tests use."""
    text, count = TABLE.subn(r"\1pass\n\n", page)
    assert count == 1, "the page has no table"
    return text


@pytest.fixture(scope="session")
def project_copy(tmp_path_factory):
    return RestoredFolder(copy_project(tmp_path_factory.mktemp("project")))


@pytest.fixture
def project(project_copy, monkeypatch):
    """A copy of what the laws speak about, to be broken; the package that runs is the one under test."""
    project_copy.restore()  # before a test, so that what a failed one has left can be looked at
    monkeypatch.setattr(files, "ROOT", Path(project_copy.folder))
    forget()
    yield files.ROOT
    forget()


def pytest_collection_finish():
    """What was imported and collected stays to the end: to look for garbage in it takes a twentieth of the quick tests.

    What tests read and keep is as long-lived, so all that is left of it is looked at less often than Python would.
    """
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


def forget():
    """What triage has read before an edit."""
    read = (wordings.declared_modes, wordings.mode_words, wordings.wordings)
    read += (wordings.read_vocabulary, report_text.form_line, similarity.vocabulary)
    read += (page_messages.of, groups.groups, known_errors.known_errors)
    for cached in (*read, similarity.index_of):
        cached.cache_clear()


@pytest.fixture
def magic_shell(tmp_path, monkeypatch):
    """IPython with `%%examine`, in a folder of its own: a cell is examined in a copy of the folder that one is in."""
    from IPython.core.interactiveshell import InteractiveShell
    from strategy_clinic.examiner.frontends import ipython_magic

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setattr(ipython_magic, "FAILED", set())
    made = InteractiveShell()
    made.run_line_magic("load_ext", "strategy_clinic")
    yield made
    made.run_line_magic("unload_ext", "strategy_clinic")


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The book, built as `make book` builds it, of a copy of the project: a warning is an error."""
    pytest.importorskip(
        "myst_nb", reason="no myst-nb here; the book needs: pip install -e '.[book]'"
    )
    pytest.importorskip("furo", reason="no furo here; the book needs: pip install -e '.[book]'")
    folder = shared_folder(tmp_path_factory, "book")
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "built").exists():
            done = build_book(copy_project(folder / "project") / "book", folder)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
            (folder / "built").touch()
    return folder / "html"


def shared_folder(tmp_path_factory, name: str) -> Path:
    """One for this run of pytest, whichever of its workers asks."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / name
    folder.mkdir(exist_ok=True)
    return folder


def build_book(source: Path, folder: Path, builder="html"):
    """As `make book` does it; the builder `dummy` follows every link and writes nothing, no HTML either."""
    build = ["-m", "sphinx", "-qW", "--keep-going", "-b", builder, "-d", folder / "read"]
    build += ["-D", "suppress_warnings=mystnb.mime_priority"] if builder == "dummy" else []
    build += [source, folder / "html"]
    # The package beside the source, which finds the notebooks there.
    environment = os.environ | {"PYTHONPATH": str(source.parent / "helpers")}
    command = [sys.executable, *build]
    return subprocess.run(
        command, cwd=source.parent, env=environment, capture_output=True, text=True
    )


def changed(path: Path, old: str, new: str, count: int = -1):
    """Edits a file; an edit that changes nothing would make its test worthless."""
    text = path.read_text()
    assert old in text, f"{old!r} is not in {path.name}"
    path.write_text(text.replace(old, new, count))
    return path
