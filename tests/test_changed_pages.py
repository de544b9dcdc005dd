"""Which notebooks `make test` runs after which change, and that the eight of ALWAYS use all that the session can do."""

import functools
import re
import sys
from importlib import metadata

import changed_pages
import pytest
from changed_pages import ALWAYS
from strategy_clinic.base import files
from strategy_clinic.rendering import sources
from strategy_clinic.setups import formats, strategies

PACKAGE = "helpers/strategy_clinic"
FM05 = f"{PACKAGE}/modes/fm05_untracked_variable"
DOCUMENTS = ["001", "002", "003"]  # those that use such a page
SHOW_A_CHECK = ["fm05", "fm11", "fm13", "fm14", "fm21", "fm23", "fm38", "fm46", *DOCUMENTS]
WITH_TABLES = 19, 20, 21, 25, 37, 38, 44, 49, 50, 51, 52, 53, 55, 56, 57, 58, 68, 71
SHOW_TABLES = [f"fm{number}" for number in WITH_TABLES]
FEATURE = re.compile(r"\bsession\.\w+(?=\()|\bfigures\.\w+|\bother_keras\b")

# A file, and the notebooks that its change selects beside the eight; one for each row of the table in changed_pages.py, and more.
CHANGES = [
    ("notebooks/fm05_untracked_variable.ipynb", ["fm05"]),
    (f"{FM05}/repair.py", ["examine"]),
    (f"{FM05}/page.py", ["atlas", "fm05", "001"]),
    (f"{PACKAGE}/document_session.py", ["000", "001", "002", "003", "004"]),
    (f"{PACKAGE}/compiler/lowering.py", ["fm24", "003"]),
    (f"{PACKAGE}/session.py", []),
]
MORE = [
    ("notebooks/documents/001_checkpoints.ipynb", ["001"]),
    (f"{FM05}/broken.py", ["fm05", "001"]),
    (f"{FM05}/rule.py", ["examine"]),
    (f"{FM05}/words.toml", ["examine"]),
    (f"{PACKAGE}/modes/statements.toml", ["000", "001", "002", "003", "004"]),
    (f"{PACKAGE}/pages/atlas.py", ["atlas"]),
    (f"{PACKAGE}/triage/similarity.py", ["examine"]),
    (f"{PACKAGE}/observer/training.py", ["examine", *SHOW_TABLES]),
    (f"{PACKAGE}/programs/show_source.py", SHOW_A_CHECK),
    (f"{PACKAGE}/programs/checks.py", SHOW_A_CHECK),
    (f"{PACKAGE}/programs/child.py", []),
    (f"{PACKAGE}/panel/figures.py", []),
    ("notebooks/records/compiled.json", ["atlas", "check", "fm24", "003"]),
]


@pytest.fixture(scope="module")
def edges():
    return changed_pages.graph()


@pytest.fixture(scope="module")
def states():
    """Those of all notebooks, as `make pages` writes them once all have passed."""
    return "".join(f"{name} {state}\n" for name, state in changed_pages.states().items())


@pytest.fixture
def passed(states, edges, project, monkeypatch):
    """A copy of the project in which all notebooks have passed; no test of it changes what a module imports."""
    monkeypatch.setattr(changed_pages, "graph", lambda: edges)
    changed_pages.passed_file().write_text(states)
    return project


def beside_the_eight() -> set[str]:
    return {name.split("_")[0] for name in changed_pages.chosen() if name not in ALWAYS}


def test_what_has_not_changed_is_not_run(passed):
    assert set(changed_pages.chosen()) == set(ALWAYS)


@pytest.mark.parametrize(
    "name, selected",
    [*CHANGES, *(pytest.param(*change, marks=pytest.mark.slow) for change in MORE)],
    ids=lambda value: str(value)[:60],
)
def test_a_change_selects_the_notebooks_that_it_may_change(passed, name, selected):
    (passed / name).write_text((passed / name).read_text() + "\n")
    assert beside_the_eight() == set(selected) - {page.split("_")[0] for page in ALWAYS}


def test_a_new_file_in_the_folder_of_a_mode_selects_its_page(passed):
    (passed / FM05 / "data.json").write_text("{}")
    assert beside_the_eight() == {"fm05", "001"}


def test_without_a_record_and_with_other_versions_all_notebooks_are_run(passed, monkeypatch):
    every = [files.page_name(source) for source in files.page_sources()]
    with monkeypatch.context() as patch:
        patch.setattr(metadata, "version", lambda name: "0")
        assert changed_pages.chosen() == every
    with monkeypatch.context() as patch:
        patch.setattr(changed_pages, "passed_file", lambda: passed / "missing.txt")
        assert changed_pages.chosen() == every


@functools.cache
def features(name: str) -> set[str]:
    """Returns what a page uses of the session, the figures and the setups."""
    code = "\n".join(code_of(name))
    values = {value for value in (*strategies.TABLE, *formats.TABLE) if f'"{value}"' in code}
    return values | set(FEATURE.findall(code))


def code_of(name: str) -> list[str]:
    """Returns the code of a page without its programs and the list of all values of its parameters."""
    cells = sources.read_notebook(files.notebook(files.page_source(name))).cells
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    return [re.sub("# @param.*", "", each) for each in code if not each.startswith("%%")]


def missing(names: set[str]) -> set[str]:
    """Returns what pages use that these do not. A document's notebook runs after a change of what it uses."""
    every = {files.page_name(source) for source in files.page_sources()}
    every -= {files.page_name(source) for source in files.document_pages()}
    return set().union(*map(features, every)) - set().union(*map(features, names))


def test_the_eight_have_all_features_of_the_session():
    assert missing(set(ALWAYS)) == set()


@pytest.mark.parametrize("name", [name for name in ALWAYS if name[:4] not in ("00_s", "fm18")])
def test_each_of_them_alone_has_one(name):
    assert missing(set(ALWAYS) - {name}) != set()


def test_the_command_prints_the_paths_of_notebooks(passed, monkeypatch, capsys):
    """`make test` stops if it cannot be run."""
    monkeypatch.setattr(sys, "argv", ["changed_pages.py"])
    changed_pages.main()
    said = capsys.readouterr()
    assert {
        files.page_name(files.page_source((passed / name).stem)) for name in said.out.split()
    } == set(ALWAYS)
    assert all((passed / name).exists() for name in said.out.split())
    assert said.err == f"{len(ALWAYS)} of {len(files.page_sources())} notebooks are run.\n"


def test_the_command_prints_the_state_of_all(states, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["changed_pages.py", "--state"])
    changed_pages.main()
    assert capsys.readouterr().out == states
    assert len(states.splitlines()) == len(files.page_sources())
