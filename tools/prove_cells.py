"""Proves that the quick tier of cells sees the repairs in `upstream/repairs`, each made in a copy of the installed Keras.

`python tools/prove_cells.py [NAME ...]` prints for each report whether its cell turns red, since the error is gone; NAME is
a report or a repair. `--whole` makes all repairs in one copy and runs the whole tier; without any repair it must be green.
`--keras FOLDER` makes no repair, and runs the cells of the named reports on another Keras, which has repaired them itself.
The exit status is 1 if a cell of the tier stays as it is.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from collections.abc import Iterator
from pathlib import Path

import prove_repairs
from prove_repairs import ROOT, NoRepair, Repair

sys.path.insert(0, str(ROOT / "helpers"))

from strategy_clinic.sweep.expected import expected  # noqa: E402 - below the path that it is on
from strategy_clinic.sweep.record import records  # noqa: E402
from strategy_clinic.sweep.tables.quick import QUICK  # noqa: E402

CELLS = "strategy_clinic.sweep.runs.test_cells"
GONE = "[XPASS(strict)]"


def cells_of(report: str) -> list[str]:
    """Returns the cells of the tier that are explained by a report."""
    recorded = records()[-1].cells
    rows = {name: expected(name, recorded).row for name in sorted(QUICK)}
    return [name for name, row in rows.items() if row and row.report == report]


def run(copy: Path, tests: list[str]) -> dict[str, str]:
    """Returns what each cell says with this copy of Keras, "" where it passes or is a known error; raises NoRepair."""
    results = copy.parent / "cells.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    command += ["-p", "strategy_clinic.sweep.pytest_plugin", f"--junitxml={results}", *tests]
    paths = [copy.parent, ROOT / "helpers"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    done = subprocess.run(
        command, cwd=copy.parent, env=environment, capture_output=True, text=True, check=False
    )
    if not results.exists():
        raise NoRepair(f"pytest wrote no results: {(done.stderr or done.stdout)[-2000:]}")
    return read(results)


def read(results: Path) -> dict[str, str]:
    found = {}
    for case in xml.parse(results).iter("testcase"):
        failed = [each for each in case if each.tag in ("failure", "error")]
        name = (case.get("name") or "").removeprefix("test_cell[").removesuffix("]")
        found[name] = (failed[0].get("message") or "failed") if failed else ""
    return found


def seen(copy: Path, report: str) -> tuple[str, bool]:
    """Returns a line about a report whose repair the copy has, and whether a cell of the tier turns red, if it has one."""
    names = cells_of(report)
    if not names:
        return f"{report}: no cell of the tier shows it", True
    found = run(copy, ["--pyargs", *(f"{CELLS}::test_cell[{name}]" for name in names)])
    words = [f"{name} {in_words(says)}" for name, says in found.items()]
    return f"{report}: {'; '.join(words)}", any(found.values())


def in_words(says: str) -> str:
    if says.startswith(GONE):
        return "turns red: the error is gone"
    return f"turns red: {says.splitlines()[0]}" if says else "stays as it is"


def prove(repairs: list[Repair], keras: Path) -> Iterator[tuple[str, bool]]:
    for repair in repairs:
        with tempfile.TemporaryDirectory() as folder:
            copy = prove_repairs.copied(keras, Path(folder))
            repair.make(copy)
            for report in repair.reports:
                yield seen(copy, report)


def prove_on(keras: Path, reports: list[str]) -> Iterator[tuple[str, bool]]:
    """Yields a line for each report, whose error another Keras does not have; raises NoRepair."""
    known = {path.stem for path in (ROOT / "upstream").glob("*.md")}
    if not reports or (unknown := sorted(set(reports) - known)):
        found = f"none is named {', '.join(unknown)}" if reports else "none is named"
        raise NoRepair(f"--keras needs names of reports, and {found}.")
    for report in reports:
        with tempfile.TemporaryDirectory() as folder:
            yield seen(prove_repairs.copied(keras, Path(folder)), report)


def whole(keras: Path) -> Iterator[tuple[str, bool]]:
    """Runs the tier with all repairs: yields a line for each cell that is red, and for each that should be."""
    every = [*prove_repairs.repairs().values()]
    repair = prove_repairs.together(every)
    with tempfile.TemporaryDirectory() as folder:
        copy = prove_repairs.copied(keras, Path(folder))
        repair.make(copy)
        found = run(copy, ["--pyargs", CELLS, "-m", "quick"])
    red = {name for name, says in found.items() if says}
    yield from ((f"{name} {in_words(found[name])}", True) for name in sorted(red))
    for name in sorted({name for each in repair.reports for name in cells_of(each)} - red):
        yield f"{name} stays as it is", False


def proofs(options: argparse.Namespace) -> Iterator[tuple[str, bool]]:
    """Returns the proofs that the arguments ask for."""
    keras = prove_repairs.checked(options.keras)
    if options.whole:
        return whole(keras)
    if options.keras:
        return prove_on(keras, options.names)
    chosen = [each for each in prove_repairs.chosen(options.names) if each.reports]
    return prove([each for each in chosen if each.name != prove_repairs.TOGETHER], keras)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="a report or a repair")
    parser.add_argument("--whole", action="store_true", help="all repairs and the whole tier")
    parser.add_argument("--keras", type=Path, help="the folder `keras` of another environment")
    options = parser.parse_args()
    try:
        results = []
        for says, is_seen in proofs(options):
            print(says, flush=True)
            results.append(is_seen)
        return 0 if all(results) else 1
    except NoRepair as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
