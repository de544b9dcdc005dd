"""The structure of the package: who may import whom, and that each folder says what it contains. Each law is broken below."""

import ast
import functools
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from law import all_tests_of
from module_graph import imports, module_of, python_files, reachable
from strategy_clinic.base import files, quick_imports
from strategy_clinic.rendering import new_mode

# A folder may import itself and the folders above it. Modules in no folder are entry points: they may import all folders.
FOLDERS = [
    "base",
    "setups",
    "observer",
    "inside",
    "forkserver",  # an extra, see may_import
    "processes",
    "sweep",
    "programs",
    "modes",
    "panel",
    "triage",
    "rendering",
    "records",
    "compiler",
    "workshop",
    "examiner",
    "mode",  # the folder of one mode; nothing imports it by its name
]
# The same inside a folder that has folders; its own modules may be imported by all of them.
SUBFOLDERS = {
    "examiner": ["runs", "report", "benchmark", "frontends"],
    "observer": ["in_children"],
    "sweep": ["tables", "measurements", "runs", "generated"],
}
# It restricts a process and knows nothing of what is observed.
CALLED = {("processes.no_network", "observer.landlock")}
ENTRY_POINTS = {"__init__", "__main__", "book", "cli", "commands", "document_session", "session"}
# Neither of the two imports the other, though one stands above.
SEPARATE = [
    ("rendering", "panel"),
    ("records", "triage"),
    ("compiler", "triage"),
    ("workshop", "triage"),
    ("workshop", "compiler"),
    ("examiner", "rendering"),
    ("examiner", "records"),
    ("examiner", "compiler"),
    ("examiner", "workshop"),
    *[("observer", folder) for folder in FOLDERS[4:15]],
]


def law_direction() -> list[str]:
    """A folder imports itself and the folders above it, and never an entry point."""
    pairs = [(one, other) for one, others in imports().items() for other in sorted(others)]
    return [f"{one} imports {other}" for one, other in pairs if not may_import(one, other)]


def may_import(one: str, other: str) -> bool:
    here, there = folder_of(one), folder_of(other)
    if (one, other) in CALLED:
        return True
    if there == "forkserver" != here:
        return one == "processes.python_process"  # which does without it where it is missing
    if here in ENTRY_POINTS:
        return there != "mode"
    if not {here, there} <= set(FOLDERS) or separate(here, there):
        return False
    if here == there:
        return here not in SUBFOLDERS or may_import_inside(here, one, other)
    return FOLDERS.index(there) < FOLDERS.index(here)


def folder_of(module: str) -> str:
    return "mode" if re.match(r"modes\.fm\d\d_", module) else module.split(".")[0]


def separate(here: str, there: str) -> bool:
    return bool({(here, there), (there, here)} & set(SEPARATE))


def may_import_inside(folder: str, one: str, other: str) -> bool:
    if one.endswith("plugin"):  # pytest's entry point
        return True
    order = ["", *SUBFOLDERS[folder]]
    here, there = (".".join(module.split(".")[1:-1]) for module in (one, other))
    return order.index(there) <= order.index(here)


def law_circles() -> list[str]:
    """No module imports, however indirectly, a module that imports it."""
    edges = imports()
    return [
        f"{one} and {other}"
        for one, others in edges.items()
        for other in others
        if one in reachable(edges, other)
    ]


def law_purpose() -> list[str]:
    """Every folder with modules is listed above and says in its first line what it contains; so does every module."""
    package = files.package()
    listed = {package / name for name in FOLDERS}
    listed |= {package / folder / name for folder, names in SUBFOLDERS.items() for name in names}
    modules = python_files()
    folders = {path.parent for path in modules} - {package}
    one_mode = {folder for folder in folders if folder_of(module_of(folder / "x")) == "mode"}
    problems = [f"the folder {path.name} is not listed" for path in folders - listed - one_mode]
    problems += [
        f"the module {path.stem} is in no folder"
        for path in package.glob("*.py")
        if path.stem not in ENTRY_POINTS
    ]
    empty = [path for path in modules if not docstring(path.read_text())]
    without = [path for path in folders - one_mode if not (path / "__init__.py").exists()]
    return problems + [f"{path.name} does not say what it contains" for path in empty + without]


@functools.cache
def docstring(text: str) -> str | None:
    return ast.get_docstring(ast.parse(text))


def law_finished() -> list[str]:
    """No folder of a mode has a TODO that `clinic new` wrote."""
    paths = (files.package() / "modes").glob("fm*/*.*")
    return [f"{path.parent.name}/{path.name}" for path in paths if "TODO" in path.read_text()]


# Mutations


def adding(name: str, text: str):
    def mutation(root):
        with open(root / "helpers" / "strategy_clinic" / name, "a") as file:
            file.write(f"\n\n{text}\n")

    mutation.__name__ = f"{name} with {text.splitlines()[-1].strip()[:40]}"
    return mutation


def after_a_statement(path: Path):
    """A string that is not the first statement is no docstring."""
    path.write_text(f"pass\n{path.read_text()}")


def a_folder_without_a_docstring(root):
    after_a_statement(root / "helpers" / "strategy_clinic" / "panel" / "__init__.py")


def a_module_without_a_docstring(root):
    after_a_statement(root / "helpers" / "strategy_clinic" / "base" / "files.py")


def a_folder_that_is_not_listed(root):
    (root / "helpers" / "strategy_clinic" / "misc").mkdir()
    (root / "helpers" / "strategy_clinic" / "misc" / "__init__.py").write_text('"""Whatever."""\n')


def a_new_mode(root):
    new_mode.write_mode("fm98", "trial_mode")


MUTATIONS = [
    ("law_finished", a_new_mode),
    ("law_direction", adding("base/files.py", "from ..modes import failure_mode")),
    ("law_direction", adding("processes/pool.py", "def late():\n    from ..records import grid")),
    ("law_direction", adding("commands.py", "def late():\n    from .forkserver import client")),
    ("law_direction", adding("triage/widget.py", "from ..rendering import sources")),
    ("law_direction", adding("modes/failure_mode.py", "from .. import cli")),
    ("law_direction", adding("examiner/runs/process.py", "from ..report import serialize")),
    ("law_direction", adding("observer/main.py", "from ..examiner import recording")),
    ("law_direction", adding("examiner/recording.py", "from .runs import process")),
    ("law_circles", adding("programs/switches.py", "def late():\n    from . import run")),
    ("law_circles", adding("base/errors.py", "from . import files")),
    ("law_purpose", a_folder_without_a_docstring),
    ("law_purpose", a_module_without_a_docstring),
    ("law_purpose", a_folder_that_is_not_listed),
    ("law_purpose", adding("loose.py", '"""A module."""')),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())


def test_an_engine_may_not_import_the_folder_of_a_mode():
    rule = "modes.fm05_untracked_variable.rule"
    assert may_import(rule, "examiner.recording")
    assert not may_import("examiner.recording", rule) and not may_import("cli", rule)


def test_the_command_line_does_not_import_tensorflow():
    """Nor does any name that a notebook imports."""
    names = "from strategy_clinic import *"
    modules = "import strategy_clinic.cli, strategy_clinic.panel.widgets"
    assert "tensorflow" not in modules_after(f"{names}\n{modules}")


def test_importing_the_package_imports_two_modules():
    assert {name for name in modules_after("import strategy_clinic") if "strategy_cl" in name} == {
        "strategy_clinic",
        "strategy_clinic.base",
        "strategy_clinic.base.public_api",
    }


def test_the_command_of_a_warm_kernel_imports_little():
    """It runs before each kernel, which waits for it: these four modules alone would take longer than all it imports."""
    loaded = modules_after("import strategy_clinic.forkserver.kernel")
    assert {name for name in loaded if "strategy_cl" in name} == {
        "strategy_clinic",
        "strategy_clinic.base",
        "strategy_clinic.base.public_api",
        "strategy_clinic.forkserver",
        "strategy_clinic.forkserver.client",
        "strategy_clinic.forkserver.kernel",
        "strategy_clinic.setups",
        "strategy_clinic.setups.start_variables",
    }
    assert not {"importlib.metadata", "inspect", "logging", "subprocess"} & loaded


def test_notebooks_are_read_without_grammars_that_others_may_import(monkeypatch):
    monkeypatch.delitem(sys.modules, "rfc3987_syntax", raising=False)
    with quick_imports.without_grammars(), pytest.raises(ImportError):
        importlib.import_module("rfc3987_syntax")
    assert "rfc3987_syntax" not in sys.modules
    monkeypatch.setitem(sys.modules, "rfc3987_syntax", there := object())
    with quick_imports.without_grammars():
        assert sys.modules["rfc3987_syntax"] is there
    assert sys.modules["rfc3987_syntax"] is there


def test_the_check_of_imports_can_fail(tmp_path):
    (tmp_path / "tensorflow.py").touch()  # the real one takes seconds
    place = f"import sys; sys.path.insert(0, {str(tmp_path)!r})"
    statement = f"{place}\nimport strategy_clinic\nimport tensorflow"
    assert "tensorflow" in modules_after(statement)


def modules_after(statement: str) -> set[str]:
    slow = "sys.modules['rfc3987_syntax'] = None"  # see quick_imports
    script = f"import sys\n{slow}\n{statement}\nprint(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())
