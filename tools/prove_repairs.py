"""Proves the repairs in `upstream/repairs` in copies of the installed Keras: the tests of a report fail before and pass after.

`python tools/prove_repairs.py` proves each repair alone and then all of them together, and prints a line for each report.
`python tools/prove_repairs.py NAME ...` proves these repairs. The exit status is 1 if one is not proven.
`--ours` leaves Keras's own tests out, `--keras FOLDER` takes another Keras, such as one in another environment.
"""

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as xml
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPAIRS = ROOT / "upstream" / "repairs"
OUR_TESTS = REPAIRS / "replica_test.py"
TOGETHER = "all together"
# Of the trainer, which most repairs change. They take minutes: only what is repaired together is tested by them.
TESTS_OF_ALL = ("trainers/trainer_test.py",)
# What tests import from Keras's repository, and its wheel does not have.
CONFTEST = """import keras
import pytest


def skip_if_backend(backend, reason):
    return pytest.mark.skipif(keras.backend.backend() == backend, reason=reason)
"""


class NoRepair(Exception):
    """A sentence: why a repair cannot be made in this Keras."""


@dataclass(frozen=True)
class Edit:
    """One place of one file, found by a line, or from that line `through` another one; lines are compared without indentation."""

    file: str
    line: str
    put: str  # before, after, instead
    text: str
    within: str = ""  # the line is the first one after this line, and need not be the only one
    through: str = ""

    def made_in(self, source: str) -> str:
        """Returns the source with this edit; raises NoRepair."""
        lines = source.splitlines(keepends=True)
        begin = self.position(lines, self.line, self.start(lines))
        end = self.position(lines, self.through, begin) if self.through else begin
        added = self.text.removeprefix("\n").splitlines(keepends=True)
        kept = {"before": (begin, begin), "after": (end + 1, end + 1), "instead": (begin, end + 1)}
        before, after = kept[self.put]
        return "".join([*lines[:before], *added, *lines[after:]])

    def start(self, lines: list[str]) -> int:
        """Returns where the line is sought; without `within`, it must be the only one in the file."""
        if self.within:
            return self.position(lines, self.within, 0)
        if (found := [each.strip() for each in lines].count(self.line)) != 1:
            raise NoRepair(f"{self.file} has the line {self.line!r} {found} times, and not once.")
        return 0

    def position(self, lines: list[str], line: str, start: int) -> int:
        for number in range(start, len(lines)):
            if lines[number].strip() == line:
                return number
        raise NoRepair(f"{self.file} has no line {line!r} where it is expected.")


@dataclass(frozen=True)
class Repair:
    name: str
    reports: tuple[str, ...]
    own_tests: tuple[str, ...]  # files of Keras, below keras/src
    edits: tuple[Edit, ...]
    changed_tests: tuple[str, ...] = ()  # tests of Keras that assert the error

    def make(self, keras: Path) -> None:
        """Makes the edits in the files of a copy; raises NoRepair."""
        for edit in self.edits:
            path = keras / "src" / edit.file
            if not path.exists():
                raise NoRepair(f"This Keras has no file {edit.file}.")
            path.write_text(edit.made_in(path.read_text()))


def repairs(folder: Path = REPAIRS) -> dict[str, Repair]:
    """Returns all repairs; one that needs another one begins with its edits."""
    tables = {path.stem: tomllib.loads(path.read_text()) for path in sorted(folder.glob("*.toml"))}
    return {name: repair_of(name, tables) for name in tables}


def repair_of(name: str, tables: dict[str, dict]) -> Repair:
    table = tables[name]
    edits = [each for other in [*table.get("needs", ()), name] for each in tables[other]["edit"]]
    return Repair(
        name,
        tuple(table["reports"]),
        tuple(table["own_tests"]),
        tuple(Edit(**each) for each in edits),
        tuple(table.get("changed_tests", ())),
    )


def together(every: list[Repair]) -> Repair:
    """Returns one repair with the edits of all, each of them once."""
    return Repair(
        TOGETHER,
        tuple(report for each in every for report in each.reports),
        tuple(dict.fromkeys([test for each in every for test in each.own_tests])) + TESTS_OF_ALL,
        tuple(dict.fromkeys(edit for each in every for edit in each.edits)),
        tuple(test for each in every for test in each.changed_tests),
    )


def installed_keras() -> Path:
    found = importlib.util.find_spec("keras")
    if found is None or not found.submodule_search_locations:
        raise NoRepair("Keras is not installed here: run this with the Python of `make test`.")
    return Path(found.submodule_search_locations[0])


def checked(keras: Path | None) -> Path:
    """Returns the folder of a Keras, by default of the installed one; raises NoRepair if it is none."""
    folder = keras or installed_keras()
    if not (folder / "src").is_dir():
        raise NoRepair(
            f"{folder} is not the folder of Keras: it has no folder src. Name the folder `keras` below site-packages."
        )
    return folder


def copied(keras: Path, folder: Path) -> Path:
    """Returns a copy of Keras, whose tests do without JAX if that is not installed."""
    copy = folder / "keras"
    shutil.copytree(keras, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "conftest.py").write_text(CONFTEST)
    if importlib.util.find_spec("jax") is None:
        for path in copy.rglob("*_test.py"):
            path.write_text(path.read_text().replace("\nimport jax\n", "\n"))
    return copy


@dataclass(frozen=True)
class Tests:
    """What became of tests, by their names, with the file before them."""

    passed: frozenset[str]
    failed: frozenset[str]

    def of(self, report: str) -> "Tests":
        """Returns our tests of one report."""
        return self.where(lambda name: name.startswith(f"{OUR_TESTS.stem}::test_{report}"))

    @property
    def of_keras(self) -> "Tests":
        return self.where(lambda name: not name.startswith(f"{OUR_TESTS.stem}::"))

    def where(self, wanted: Callable[[str], bool]) -> "Tests":
        return Tests(frozenset(filter(wanted, self.passed)), frozenset(filter(wanted, self.failed)))


def run(copy: Path, tests: list[str]) -> Tests:
    """Runs tests with a copy of Keras; raises NoRepair if they cannot be run at all."""
    results = copy.parent / "results.xml"
    results.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    command += ["--continue-on-collection-errors"]
    command += ["-p", "untuned", f"--junitxml={results}", "--rootdir", str(copy.parent), *tests]
    paths = [copy.parent, ROOT / "tools", ROOT / "helpers"]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "KERAS_BACKEND": "tensorflow",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    done = subprocess.run(
        command, cwd=copy.parent, env=environment, capture_output=True, text=True, check=False
    )
    if not results.exists():
        raise NoRepair(f"pytest wrote no results: {(done.stderr or done.stdout)[-2000:]}")
    return read(results)


def read(results: Path) -> Tests:
    """Returns the results of a file in JUnit's format; a test that is skipped is in neither set."""
    passed, failed = set(), set()
    for case in xml.parse(results).iter("testcase"):
        name = f"{case.get('classname', '').split('.')[-2:][0]}::{case.get('name')}"
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(name)
        elif case.find("skipped") is None:
            passed.add(name)
    return Tests(frozenset(passed), frozenset(failed))


def our_tests(repair: Repair, folder: Path) -> list[str]:
    """Returns the arguments of pytest for our tests of the repair's reports, which are copied beside the copy of Keras."""
    copy = Path(shutil.copy(OUR_TESTS, folder))
    names = [each for each in names_of_tests(copy) if is_of(each, repair.reports)]
    return [f"{copy}::ReplicaTest::{name}" for name in names]


def names_of_tests(path: Path) -> list[str]:
    return re.findall(r"^    def (test_\w+)\(self\)", path.read_text(), re.MULTILINE)


def is_of(test: str, reports: tuple[str, ...]) -> bool:
    return test.startswith(tuple(f"test_{report}" for report in reports))


def tests_of_keras(copy: Path, files: Iterable[str]) -> list[str]:
    """Returns those of these test files that this Keras has."""
    return [str(path) for file in files if (path := copy / "src" / file).exists()]


def failures(repair: Repair, report: str, before: Tests, after: Tests) -> str:
    """Returns what is not proven of a report, in a few words; nothing if all is."""
    tests = before.of(report)
    if not tests.failed:
        return "has no test that fails before"
    ours = after.of(report)
    if ours.failed or not ours.passed:
        return f"is not repaired: {', '.join(sorted(ours.failed)) or 'no test was run'}"
    if new := broken(repair, before, after):
        return f"breaks Keras's own tests: {', '.join(sorted(new))}"
    return ""


def broken(repair: Repair, before: Tests, after: Tests) -> set[str]:
    """Returns Keras's own tests that fail with the repair, but not before, and do not assert the error."""
    return {
        test
        for test in after.of_keras.failed - before.of_keras.failed
        if not any(name in test for name in repair.changed_tests)
    }


def line(repair: Repair, name: str, says: str, before: Tests, after: Tests) -> str:
    """Returns what is printed of a report, or of all together: what is not proven, or that it is."""
    says = says or "fails before, passes after"
    return f"{name}: {says}. {own_tests(repair, before, after)}" + (
        f" ({repair.name})" if name != repair.name else ""
    )


def own_tests(repair: Repair, before: Tests, after: Tests) -> str:
    """Returns how many of Keras's own tests pass with a repair, and why others fail."""
    own = after.of_keras
    if not own.passed | own.failed:
        return "Keras's own tests are not run"
    tests = f"Keras's own tests: {len(own.passed)} passed, {len(own.failed)} failed"
    if as_before := own.failed & before.of_keras.failed:
        tests += f", of which {len(as_before)} fail before, too"
    if changed := own.failed - before.of_keras.failed - broken(repair, before, after):
        tests += f", of which {len(changed)} assert the error"
    return tests


class Proofs:
    """Runs tests with copies of one Keras."""

    def __init__(self, keras: Path, folder: Path, ours_only: bool = False):
        self.keras, self.folder, self.ours_only = keras, folder, ours_only
        self.plain = copied(keras, folder / "plain")

    def after(self, repair: Repair) -> Tests:
        """Returns what becomes of our tests and of Keras's own with the repair."""
        copy = copied(self.keras, self.folder / repair.name.replace(" ", "_"))
        repair.make(copy)
        own = [] if self.ours_only else tests_of_keras(copy, repair.own_tests)
        return run(copy, [*our_tests(repair, copy.parent), *own])

    def before(self, repair: Repair, after: Tests) -> Tests:
        """Returns what becomes of our tests without the repair, and of the files of Keras's tests in which some fail with it."""
        files = {name.partition("::")[0] for name in after.of_keras.failed}
        own = [test for test in repair.own_tests if Path(test).stem in files]
        ours = our_tests(repair, self.plain.parent)
        return run(self.plain, [*ours, *tests_of_keras(self.plain, own)])

    def prove(self, repair: Repair) -> Iterator[tuple[str, bool]]:
        """Yields a line for each report, or one line for all together, and whether that is proven."""
        try:
            after = self.after(repair)
            before = self.before(repair, after)
        except NoRepair as error:
            yield f"{', '.join(repair.reports)}: cannot be repaired. {error} ({repair.name})", False
            return
        found = {each: failures(repair, each, before, after) for each in repair.reports}
        if repair.name == TOGETHER:
            found = {TOGETHER: "; ".join(f"{each} {says}" for each, says in found.items() if says)}
        for name, says in found.items():
            yield line(repair, name, says, before, after), not says


def chosen(names: list[str]) -> list[Repair]:
    """Returns the repairs with these names or of these reports, or all of them and all together."""
    every = [*repairs().values()]
    known = {name for each in every for name in (each.name, *each.reports)}
    if unknown := sorted(set(names) - known):
        raise NoRepair(
            f"No repair or report is named {', '.join(unknown)}. There are: {', '.join(sorted(known))}."
        )
    wanted = [each for each in every if {each.name, *each.reports} & set(names)]
    return wanted or [*every, together(every)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="a report, or a file of upstream/repairs without .toml",
    )
    parser.add_argument("--ours", action="store_true", help="without Keras's own tests")
    parser.add_argument("--keras", type=Path, help="the folder `keras` of another environment")
    arguments = parser.parse_args()
    try:
        return prove(chosen(arguments.names), checked(arguments.keras), arguments.ours)
    except NoRepair as error:
        print(error, file=sys.stderr)
        return 2


def prove(every: list[Repair], keras: Path, ours_only: bool) -> int:
    """Prints a line for each report of these repairs; returns 1 if one of them is not proven."""
    proven = True
    with tempfile.TemporaryDirectory() as folder:
        proofs = Proofs(keras, Path(folder), ours_only)
        for repair in every:
            for says, is_proven in proofs.prove(repair):
                print(says, flush=True)
                proven &= is_proven
    return 0 if proven else 1


if __name__ == "__main__":
    sys.exit(main())
