"""One source of versions: environment.yml, binder/ and the lock follow from pyproject.toml, which declares every import."""

import ast
import functools
import re
import subprocess
import sys
import tomllib

import pytest
from conftest import ROOT, changed
from strategy_clinic.base import files, project
from strategy_clinic.base.project import distribution_name

# Modules whose distribution has another name.
DISTRIBUTIONS = {"absl": "absl-py", "PIL": "pillow", "yaml": "pyyaml"}
# Modules that come with nothing that we declare, each for a reason.
UNDECLARED = {
    "google": "Colab's own module, which is there on Colab only",
    "scipy": "of a tool that says so in its first lines",
    "sklearn": "of a tool that says so in its first lines",
}


def names(lines: str) -> dict[str, str]:
    """Returns the name and the version of each line of a lock."""
    pairs = (line.split(" ")[0].split("==") for line in lines.splitlines() if "==" in line)
    return {name: version for name, version in pairs if not name.startswith("#")}


def required(listed: list[str]) -> set[str]:
    return set(map(distribution_name, listed)) - {"strategy-clinic"}


def drifted(root) -> list[str]:
    expected = {
        root / path.relative_to(files.ROOT): text for path, text in project.derived().items()
    }
    problems = [path.name for path, text in expected.items() if path.read_text() != text]
    lock = names((root / "requirements.lock").read_text())
    binder = names((root / "binder" / "requirements.txt").read_text())
    declared = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    core, extras = declared["dependencies"], declared["optional-dependencies"]
    problems += [f"binder: {name}" for name, version in binder.items() if lock.get(name) != version]
    needed = required(core + extras["notebooks"])
    problems += [f"binder lacks {name}" for name in needed - set(binder)]
    needed = required(core + [each for extra in extras.values() for each in extra])
    return problems + [f"lock lacks {name}" for name in needed - set(lock)]


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
        ("requirements.lock", "mypy==", "mypi=="),
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


def test_addresses_name_the_repository_of_the_settings():
    """None while it is not published."""
    urls = project.project().get("urls", {})
    assert all(project.address() and url.startswith(project.address()) for url in urls.values())


# Imports

IMPORT = re.compile(r"^\s*(?:import|from) (\w+)", re.MULTILINE)  # ruff keeps each on its own line


@functools.cache
def imported(text: str) -> set[str]:
    """Returns the top-level modules that a file imports, at its top or inside a function."""
    result = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            result |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            result.add(node.module.split(".")[0])
    return result


def undeclared(texts: list[str], declared: list[str]) -> set[str]:
    """Returns the imports that no requirement names; what lies beside the tests is imported by the name of its file or folder."""
    files = [path for folder in ("tests", "tools") for path in (ROOT / folder).rglob("*.py")]
    ours = {name for path in files for name in (path.stem, path.parent.name)}
    known = {"strategy_clinic", *UNDECLARED, *ours, *sys.stdlib_module_names}
    words = {word for text in texts for word in IMPORT.findall(text)} - known
    allowed = required(declared)
    unknown = {
        word for word in words if distribution_name(DISTRIBUTIONS.get(word, word)) not in allowed
    }
    suspects = [text for text in texts if not unknown.isdisjoint(IMPORT.findall(text))]
    return unknown & set().union(*map(imported, suspects))  # and not only named in a sample


def texts_in(folder: str) -> list[str]:
    return [path.read_text() for path in (ROOT / folder).rglob("*.py")]


CORE = project.project()["dependencies"]
EXTRAS = project.project()["optional-dependencies"]
NEEDED = {
    "helpers": CORE
    + EXTRAS["notebooks"]
    + EXTRAS["cluster"]
    + EXTRAS["search"]
    + ["jupytext", "pytest"],
    "tests": CORE + [each for extra in EXTRAS.values() for each in extra],
    "tools": CORE + EXTRAS["notebooks"],
}


@pytest.mark.parametrize("folder", NEEDED)
def test_every_import_is_declared(folder):
    assert undeclared(texts_in(folder), NEEDED[folder]) == set()


def test_an_import_that_is_not_declared_is_found():
    needed = [each for each in NEEDED["helpers"] if not each.startswith("traitlets")]
    assert undeclared(texts_in("helpers"), needed) == {"traitlets"}


# Extras

WITHOUT_EXTRAS = """
import sys
sys.modules.update(dict.fromkeys({missing}))
from strategy_clinic import cli
sys.exit(cli.main({arguments}))
"""


def run_without_extras(folder, *arguments: str) -> subprocess.CompletedProcess:
    """Runs a command where nothing is installed that only an extra installs."""
    missing = [
        name.replace("-", "_") for name in required([r for extra in EXTRAS.values() for r in extra])
    ]
    script = WITHOUT_EXTRAS.format(missing=missing, arguments=list(arguments))
    given = {"cwd": folder, "capture_output": True, "text": True}
    return subprocess.run([sys.executable, "-c", script], input="ValueError: no", **given)


def test_triage_needs_no_extra(tmp_path):
    done = run_without_extras(tmp_path, "triage")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_examine_needs_no_extra(tmp_path):
    (tmp_path / "train.py").write_text("import tensorflow as tf\n\ntf.Variable(1.0)\n")
    done = run_without_extras(tmp_path, "examine", "--devices", "1", "train.py")
    assert done.returncode == 0 and "nothing found" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("command", ["run", "render", "check"])
def test_a_missing_extra_is_named_in_one_sentence(tmp_path, command):
    done = run_without_extras(tmp_path, command, "fm05")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "pip install -e '.[notebooks]'" in done.stderr
