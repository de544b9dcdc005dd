"""The cells of the sweep as items of pytest: what passes and what is red, the quick tier, and the distribution of its own."""

import json
import math
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import prove_cells
import prove_repairs
import pytest
from conftest import ROOT
from law import all_tests_of, edit
from module_graph import imports, reachable
from strategy_clinic.base import files
from strategy_clinic.sweep import record, settled
from strategy_clinic.sweep.differences import Outcome, Result
from strategy_clinic.sweep.expected import Expected, expected
from strategy_clinic.sweep.runs import catalogue, cells, program, test_cells
from strategy_clinic.sweep.tables.quick import QUICK

pytest_plugins = ["pytester"]

MODULE = "strategy_clinic.sweep.runs.test_cells"
PLUGIN = ["-p", "no:hypothesispytest", "-p", "strategy_clinic.sweep.pytest_plugin"]
MOST = 50  # times what SAME takes: how long the quick tier may take, on any machine. About a minute with its start
SAME = "optimizer/Adam/plain/fit/even/x2/keras3"
KNOWN = "optimizer/SGD/clipnorm/fit/even/x2/keras3"
IN_TURN = "loss/MeanSquaredError/plain/fit/uneven/x2/keras3"
INTENDED = "loss/Circle/plain/fit/even/x2/keras3"
NAN = "layer/BatchNormalization/plain/fit/empty/x2/keras3"


@pytest.fixture(autouse=True)
def rows_of_this_project():
    """A mutation of a law may have left others."""
    settled.settled.cache_clear()


STORED = record.records()[-1].cells


def recorded(name: str) -> Result:
    cell = STORED[name]
    return Result(cell.outcome, cell.values, cell.says, cell.size, cell.in_turn, cell.rounding)


DIFFERS = Result(Outcome.DIFFERS, ["weights"], "weights 1.5, right 2.5", 0.4)


@pytest.fixture
def items(pytester, monkeypatch):
    """Runs cells that have these results, in place of what Keras gives, and returns how each ends and pytest's own text."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # each run would import all of them
    monkeypatch.setattr(test_cells, "start", lambda keras: None)
    monkeypatch.setattr(test_cells, "first_difference", lambda cell: f"parts: {cell.name}")

    def run(results: dict[str, Result], *arguments: str):
        monkeypatch.setattr(test_cells, "result_of", lambda cell, *_: results[cell.name])
        names = [f"{MODULE}::test_cell[{name}]" for name in results]
        done = pytester.runpytest_inprocess(*PLUGIN, "--pyargs", *names, *arguments)
        reports = done.reprec.getreports("pytest_runtest_logreport")
        ends = {name_in(each.nodeid): ending(each) for each in reports if each.when == "call"}
        return ends, done.stdout.str()

    return run


def name_in(nodeid: str) -> str:
    return nodeid.partition("[")[2].removesuffix("]")


def ending(report) -> str:
    return "xfailed" if report.skipped and hasattr(report, "wasxfail") else report.outcome


# What passes and what is red: for each law a cell as it is recorded, and the same with what a repair or an error would give.
CASES = [
    (SAME, Result(Outcome.SAME), "passed"),
    (SAME, DIFFERS, "failed"),
    (SAME, Result(Outcome.RAISES, [], "ValueError: x"), "failed"),
    (KNOWN, recorded(KNOWN), "xfailed"),
    (KNOWN, Result(Outcome.SAME), "failed"),
    (KNOWN, replace(recorded(KNOWN), size=100.0), "failed"),
    (KNOWN, Result(Outcome.RAISES, [], "ValueError: x"), "failed"),
    (IN_TURN, recorded(IN_TURN), "passed"),
    (IN_TURN, replace(recorded(IN_TURN), in_turn=False), "failed"),
    (IN_TURN, Result(Outcome.SAME), "failed"),
    (INTENDED, recorded(INTENDED), "passed"),
    (INTENDED, Result(Outcome.RAISES, [], "ValueError: x"), "failed"),
    (NAN, recorded(NAN), "xfailed"),
    (NAN, replace(recorded(NAN), values=["weights"], size=0.1), "failed"),
]


def rounds(cases: list[tuple[str, Result, str]]) -> list[list[tuple[str, Result, str]]]:
    """Returns the cases in as few runs of pytest as there can be, since each collects all cells: in one no cell is twice."""
    runs: list[list[tuple[str, Result, str]]] = []
    for case in cases:
        free = (run for run in runs if case[0] not in [name for name, *_ in run])
        run = next(free, None)
        runs.append([case]) if run is None else run.append(case)
    return runs


@pytest.mark.slow
@pytest.mark.parametrize("cases", rounds(CASES), ids=["first", "second", "third", "fourth"])
def test_an_item_passes_or_is_red(items, cases):
    ends, _ = items({name: result for name, result, _ in cases})
    assert ends == {name: outcome for name, _, outcome in cases}


@pytest.mark.slow
def test_what_is_red_says_what_was_found_and_expected_and_has_the_program(items):
    otherwise = replace(recorded(IN_TURN), says="weights 1, right 2")
    _, text = items({SAME: DIFFERS, KNOWN: otherwise})
    assert f"{SAME}: is differs (weights 1.5, right 2.5)" in text
    assert "expected: same" in text
    assert "keras.optimizers.Adam(learning_rate=0.1)" in text
    assert "expected: differs" in text and "explained by clipping_before_all_reduce" in text
    assert ", as one device that takes the parts in turn" in text
    assert "parts:" not in text


@pytest.mark.slow
def test_where_it_differs_first_is_told_if_it_is_asked_for(items):
    """Of a known error that is repaired the strict xfail tells; of one that is not, whoever asks for it."""
    _, text = items({SAME: DIFFERS, KNOWN: Result(Outcome.SAME)}, "--first-difference")
    assert f"parts: {SAME}" in text
    assert "[XPASS(strict)] clipping_before_all_reduce: gradients are clipped" in text
    _, text = items({KNOWN: recorded(KNOWN)}, "--first-difference", "--runxfail")
    assert f"parts: {KNOWN}" in text


@pytest.mark.slow
def test_another_backend_of_keras_ends_the_run_with_a_sentence(items, monkeypatch):
    monkeypatch.setattr(test_cells, "start", lambda keras: cells.require_tensorflow("jax"))
    ends, text = items({SAME: Result(Outcome.SAME), KNOWN: recorded(KNOWN)})
    assert ends == {}
    assert text.count("Keras runs on jax here") == 1 and "set KERAS_BACKEND=tensorflow" in text


MUTATIONS_OF_JUDGEMENT = {
    "a difference is as expected": (Expected, "is_met_by", lambda *_: True, SAME, DIFFERS),
    "no error is known": (
        Expected,
        "is_known_error",
        property(lambda _: False),
        KNOWN,
        recorded(KNOWN),
    ),
    "nothing is explained": (Expected, "is_met_by", lambda *_: False, IN_TURN, recorded(IN_TURN)),
    "no xfail is strict": (
        Expected,
        "is_always_seen",
        property(lambda _: False),
        KNOWN,
        Result(Outcome.SAME),
    ),
}
RIGHT = {SAME: "failed", KNOWN: "xfailed", IN_TURN: "passed"}


@pytest.mark.parametrize("mutation", MUTATIONS_OF_JUDGEMENT)
def test_a_mutation_of_what_is_expected_changes_an_outcome(mutation, monkeypatch):
    owner, name, change, cell, result = MUTATIONS_OF_JUDGEMENT[mutation]
    before = outcome_of(cell, result)
    monkeypatch.setattr(owner, name, change)
    assert outcome_of(cell, result) != before


def outcome_of(name: str, result: Result) -> tuple[object, ...]:
    """Returns how an item ends, and its marks, without a run of pytest."""
    known = expected(name, STORED)
    now = record.RecordedCell(name, "", **vars(result))
    marks = [mark.kwargs for mark in test_cells.xfail(known)]
    return known.is_met_by(now), known.is_known_error, str(marks)


def test_a_strict_xfail_has_the_report_or_the_issue_in_its_reason():
    names = [name for name in STORED if name.endswith("/keras3")]
    reasons = {each.reason for name in names if (each := expected(name, STORED)).is_known_error}
    assert any(reason.startswith("keras#20582: ") for reason in reasons)
    assert any(reason.startswith("dropout_same_mask: ") for reason in reasons)
    assert all(re.match(r"[\w#]+: |https://", reason) for reason in reasons)


def test_a_cell_that_is_not_recorded_is_the_same_or_news():
    new = Expected(None, None)
    assert new.is_met_by(record.RecordedCell("x", "", Outcome.SAME))
    assert not new.is_met_by(record.RecordedCell("x", "", Outcome.HANGS))


def test_an_error_that_not_each_run_shows_is_no_strict_xfail():
    name = "layer/DepthwiseConv2D/plain/fit/empty/x2/keras3"
    assert not expected(name, STORED).is_always_seen
    assert expected(KNOWN, STORED).is_always_seen


# The programs of cells


def cell_named(name: str):
    return next(cell for cell in catalogue.chosen_cells([3], name) if cell.name == name)


def test_every_cell_has_a_program_and_most_are_of_keras_alone():
    every = catalogue.chosen_cells([3])
    alone = [cell for cell in every if program.is_plain(cell)]
    assert len(alone) > 0.7 * len(every)
    for cell in every:
        compile(program.program(cell), cell.name, "exec")


def test_a_program_has_the_functions_of_our_own_that_a_row_calls():
    text = program.program(cell_named("loss/function/returns one number/fit/even/x2/keras3"))
    assert "def loss_of_one_number(keras):" in text and "loss_of_one_number(keras)," in text
    assert "strategy_clinic" not in text and "Any" not in text


def test_a_row_with_more_than_its_class_runs_by_its_name():
    text = program.program(cell_named("training/fit/compute_loss/fit/even/x2/keras3"))
    assert "from strategy_clinic.sweep.runs import cells" in text
    assert text.count("training/fit/compute_loss/fit/even/x2/keras3") == 3


def test_what_looks_inside_runs_the_replicas_alone(monkeypatch):
    asked = []

    def run(command, **named):
        asked.append((command, Path(command[-1]).read_text()))
        return subprocess.CompletedProcess(command, 1, "the runs part in step 1\n", "")

    monkeypatch.setattr(program.subprocess, "run", run)
    assert program.first_difference(cell_named(KNOWN)) == "the runs part in step 1"
    command, text = asked[0]
    assert command[1:6] == ["-m", "strategy_clinic", "show", "--devices", "2"]
    assert "2 replicas" in text and "one device" not in text


def test_a_look_inside_without_the_clinic_or_without_an_end_says_so(monkeypatch):
    def run(command, **named):
        raise subprocess.TimeoutExpired(command, program.LIMIT)

    monkeypatch.setattr(program.subprocess, "run", run)
    assert program.first_difference(cell_named(KNOWN)).endswith("no end within 240 seconds.")
    monkeypatch.setattr(program.importlib.util, "find_spec", lambda name: None)
    assert "strategy_clinic is not installed" in program.first_difference(cell_named(KNOWN))


PROGRAMS = """
import contextlib, io, json, sys
outputs = {}
for name, text in json.load(sys.stdin).items():
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(text, name, "exec"), {})
    outputs[name] = said.getvalue()
print(json.dumps(outputs))
"""


@pytest.mark.slow
@pytest.mark.thorough
def test_programs_show_what_their_cells_do():
    """One of each form: its two results differ where the cell does."""
    names = [
        SAME,
        KNOWN,
        "loss/function/returns one number/evaluate/uneven/x2/keras3",
        "metric/AUC/plain/evaluate/uneven/x2/keras3",
        "layer/Conv2D/plain/fit/even/x2/keras3",
        "layer/BatchNormalization/plain/fit/even/x2/keras3",
        "layer/Dropout/randomness/loop/even/x2/keras3",
    ]
    asked = json.dumps({name: program.program(cell_named(name)) for name in names})
    environment = os.environ | {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS],
        input=asked,
        capture_output=True,
        text=True,
        env=environment,
    )
    outputs = json.loads(done.stdout.splitlines()[-1])
    for name, text in outputs.items():
        one, several = numbers(text)
        is_same = one == pytest.approx(several, abs=1e-4)
        assert is_same is not STORED[name].differs, text


def numbers(text: str) -> list[list[object]]:
    """Returns the numbers that each of the two prints has; of words, their lengths."""
    one, several = re.split(r"2 replicas:", text.partition("one device:")[2])
    found = [
        [float(n) for n in re.findall(r"(?<![a-z])-?\d+\.?\d*(?:e-?\d+)?", each)]
        for each in (one, several)
    ]
    return found if found[0] else [[len(one.strip())], [len(several.strip())]]


# The quick tier


def law_quick() -> list[str]:
    """The tier has cells of the tables, takes at most MOST times a plain one, and has one for each report without a cluster."""
    settled.settled.cache_clear()
    stored = record.records()[-1].cells
    names = {cell.name for cell in catalogue.chosen_cells([3])}
    rows = {name: expected(name, stored) for name in names}
    shown = {each.row.report for name, each in rows.items() if name in QUICK and each.row}
    at_night = {
        each.row.report for name, each in rows.items() if name.startswith("workers/") and each.row
    }
    reports = tomllib.loads((files.ROOT / "upstream" / "reports.toml").read_text())
    in_process = [each for name, each in rows.items() if not name.startswith("workers/")]
    wanted = {each.row.report for each in in_process if each.row} - {""}
    wanted |= {name for name, each in reports.items() if "without_cell" not in each} - at_night
    problems = [f"{name} is no cell" for name in QUICK - names]
    problems += [f"no cell of the tier shows {report}" for report in sorted(wanted - shown)]
    seconds = sum(stored[name].seconds or math.inf for name in QUICK & stored.keys())
    times = seconds / stored[SAME].seconds
    return problems + ([] if times <= MOST else [f"the tier takes {times:.0f} times a plain cell"])


# The distribution of its own

LISTED = "replica-cells/pyproject.toml"
FORCED = re.compile(r'^"\.\./(?P<source>[^"]+)" = "replica_cells/(?P<target>[^"]+)"$', re.MULTILINE)


def law_packaged() -> list[str]:
    """The distribution has the modules that the cells need, each at its own place, and the newest record."""
    table = tomllib.loads((files.ROOT / LISTED).read_text())
    forced = table["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    listed = {source.removeprefix("../"): target for source, target in forced.items()}
    package = "helpers/strategy_clinic/"
    modules = {
        path.relative_to(files.ROOT).as_posix()
        for source in listed
        for path in modules_in(files.ROOT / source)
    }
    needed = {f"{package}{module.replace('.', '/')}.py" for module in needed_modules()}
    problems = [f"{name} is missing in {LISTED}" for name in sorted(needed - modules)]
    problems += [f"{name} is not needed" for name in sorted(modules - needed)]
    newest = record.record_file(record.records()[-1].name).relative_to(files.ROOT).as_posix()
    problems += [] if newest in listed else [f"{newest} is missing in {LISTED}"]
    return problems + [
        f"{source} is put at {target}"
        for source, target in listed.items()
        if source.startswith(package)
        and source.removeprefix(package) != target[len("replica_cells/") :]
    ]


def modules_in(path: Path) -> list[Path]:
    inside = files.package() in path.parents
    return [
        each
        for each in (path.rglob("*.py") if path.is_dir() else [path])
        if inside and each.suffix == ".py"
    ]


def needed_modules() -> set[str]:
    """Returns what the cells import, and the measurements, which are imported by their names."""
    edges = imports()
    starts = {
        "sweep.runs.test_cells",
        *(name for name in edges if name.startswith("sweep.measurements.")),
    }
    found = set.union(starts, *(reachable(edges, start) for start in starts))
    folders = {parent for name in found for parent in parents_of(name)}
    return found | {f"{folder}.__init__" for folder in folders}


def parents_of(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def needs_another_module(root: Path) -> None:
    with open(root / "helpers/strategy_clinic/sweep/runs/measured.py", "a") as file:
        file.write("\nfrom ...processes import pool\n")


def forgets_an_error(root: Path) -> None:
    path = root / "notebooks/records/sweep-tensorflow-2.21.json"
    stored = json.loads(path.read_text())
    cell = next(each for each in stored["cells"] if each["cell"] == KNOWN)
    cell |= {"outcome": "same", "values": [], "says": ""}
    path.write_text(json.dumps(stored))


def takes_longer(root: Path) -> None:
    path = root / "notebooks/records/sweep-tensorflow-2.21.json"
    stored = json.loads(path.read_text())
    cell = next(each for each in stored["cells"] if each["cell"] == KNOWN)
    cell["seconds"] = 60.0
    path.write_text(json.dumps(stored))


MUTATIONS = [
    ("law_quick", forgets_an_error),
    ("law_quick", takes_longer),
    (
        "law_quick",
        edit(
            "helpers/strategy_clinic/sweep/settled.toml",
            'cells = ["layer/*/loop/*/keras3"',
            'cells = ["nothing"',
        ),
    ),
    (
        "law_quick",
        edit(
            "helpers/strategy_clinic/sweep/settled.toml",
            'cells = ["check/deletion/an iterator/*"]',
            'cells = ["nothing"]',
        ),
    ),
    ("law_packaged", needs_another_module),
    ("law_packaged", edit(LISTED, "runs/in_turn.py", "runs/child.py")),
    ("law_packaged", edit(LISTED, '"replica_cells/sweep/items.py"', '"replica_cells/items.py"')),
    (
        "law_packaged",
        edit(LISTED, "records/sweep-tensorflow-2.21.json", "records/sweep-tensorflow-2.20.json"),
    ),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())

ALONE = """
import sys


def pytest_sessionfinish(session):
    print("clinic:", "strategy_clinic" in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.thorough
def test_the_distribution_runs_cells_without_the_clinic(tmp_path):
    """It is built and installed as a wheel, and its plugin is found; each of two workers starts TensorFlow once."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    site, wheels = tmp_path / "site", tmp_path / "wheels"
    build = ["wheel", "-q", "--no-build-isolation", "--no-deps", "-w", str(wheels)]
    subprocess.run([*pip, *build, str(ROOT / "replica-cells")], check=True)
    install = ["install", "-q", "--no-deps", "--target", str(site)]
    subprocess.run([*pip, *install, *map(str, wheels.glob("*.whl"))], check=True)
    (site / "alone.py").write_text(ALONE)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "replica_cells.sweep.pytest_plugin",
        "-p",
        "alone",
    ]
    command += ["-p", "xdist", "-n", "2", "-s", "--junitxml=cells.xml", "--pyargs", "replica_cells"]
    done = subprocess.run(
        [*command, "-m", "quick", "-k", "clipnorm or AUC"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(site), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )
    assert "1 passed, 1 xfailed" in done.stdout, done.stdout + done.stderr
    assert "clinic: False" in done.stdout
    assert 'tests="2"' in (tmp_path / "cells.xml").read_text()


# The proof by repairs, tools/prove_cells.py


def test_a_repair_is_seen_by_the_cells_of_its_report():
    assert prove_cells.cells_of("dropout_same_mask") == [
        "layer/Dropout/randomness/loop/even/x2/keras3"
    ]
    assert prove_cells.cells_of("fit_of_several_workers") == []


@pytest.mark.parametrize("names", [[], ["nonsense"]])
def test_another_keras_needs_names_of_reports(names, monkeypatch, capsys):
    keras = prove_repairs.installed_keras()
    monkeypatch.setattr(sys, "argv", ["prove_cells.py", "--keras", str(keras), *names])
    assert prove_cells.main() == 2
    assert f"none is named{' nonsense' if names else ''}." in capsys.readouterr().err


def test_what_becomes_of_a_cell_with_a_repair_is_told(tmp_path):
    results = tmp_path / "cells.xml"
    results.write_text(
        "<testsuites><testsuite>"
        '<testcase name="test_cell[a/b]"><failure message="[XPASS(strict)] x: y"/></testcase>'
        '<testcase name="test_cell[c]"><failure message="Failed: c: is same&#10;more"/></testcase>'
        '<testcase name="test_cell[d]"><skipped message="x: y"/></testcase>'
        '<testcase name="test_cell[e]"/>'
        "</testsuite></testsuites>"
    )
    found = prove_cells.read(results)
    assert {name: prove_cells.in_words(says) for name, says in found.items()} == {
        "a/b": "turns red: the error is gone",
        "c": "turns red: Failed: c: is same",
        "d": "stays as it is",
        "e": "stays as it is",
    }
