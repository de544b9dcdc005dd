"""The record of the sweep is of the tables as they are, and every difference in it is settled. Each law is broken below."""

import ast
import json
import re

from law import all_tests_of, edit
from strategy_clinic.base import files
from strategy_clinic.sweep import record, settled
from strategy_clinic.sweep.differences import Outcome
from strategy_clinic.sweep.runs import catalogue
from strategy_clinic.sweep.tables.quick import QUICK

AT_LEAST = 2500  # cells that compare something


def newest() -> record.SweepRecord:
    return record.records()[-1]


def rows() -> tuple[settled.Settled, ...]:
    """Returns the rows of the project under test, which may be a copy, and lets explanations be of these."""
    settled.settled.cache_clear()
    return settled.settled()


def law_recorded() -> list[str]:
    """The record has every cell of the tables, of their present code, and no class of Keras is without a row."""
    stored, cells = newest(), catalogue.chosen_cells([2, 3])
    problems = [f"{cell.name}: run clinic sweep" for cell in cells if not stored.holds(cell)]
    problems += [
        f"{name} is no cell" for name in stored.cells.keys() - {each.name for each in cells}
    ]
    compared = [cell for cell in stored.cells.values() if cell.outcome != Outcome.UNAVAILABLE]
    problems += [] if len(compared) >= AT_LEAST else [f"only {len(compared)} cells"]
    return problems + [f"{name} has no row" for name in stored.without_row]


def law_settled() -> list[str]:
    """Every difference of the record is explained."""
    rows()
    return [f"{cell.cell}: {cell.says}" for cell in settled.unexplained(newest().to_settle)]


def law_explanations() -> list[str]:
    """Every explanation is of a difference, has a place, and a bug has a report or an issue."""
    listed = rows()
    used = {settled.explanation(cell) for cell in newest().to_settle}
    problems = [f"nothing differs as in {row.says!r}" for row in listed if row not in used]
    for row in listed:
        if row.report and not (files.ROOT / row.reference).exists():
            problems.append(f"there is no {row.reference}")
        if not row.reference:
            problems.append(f"{row.says!r} has no place")
    return problems


def law_measured_tolerances() -> list[str]:
    """No table and no module of the sweep has a tolerance of its own; each cell of the quick tier has a measured one."""
    folder = files.package() / "sweep"
    problems = [
        f"{path.name}: {name} is typed"
        for path in sorted(folder.rglob("*.py"))
        if path.parent.name != "generated"  # its programs have no record
        for name in typed_tolerances(path.read_text())
    ]
    stored = newest().cells
    return problems + [
        f"{name}: what rounding does is not measured" for name in QUICK if not stored[name].rounding
    ]


def typed_tolerances(text: str) -> list[str]:
    """Returns the names with `tolerance` in them that a number is given to."""
    found = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.keyword(arg=str(name), value=ast.Constant()):
                found.append(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant()):
                found.append(name)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant()):
                found.append(name)
    return [name for name in found if "tolerance" in name.lower()]


def law_words() -> list[str]:
    """What is said to happen on one device, too, does: nothing is compared there. No row says what other versions do."""
    rows()
    outcomes: dict[settled.Settled | None, set[str]] = {}
    for cell in newest().to_settle:
        outcomes.setdefault(settled.explanation(cell), set()).add(cell.outcome)
    return [
        f"{row.says!r} is said of cells that are {', '.join(sorted(found))}"
        for row, found in outcomes.items()
        if row and ("on one device, too" in row.says) != (found == {Outcome.UNAVAILABLE})
    ] + [
        f"{row.says!r}: versions are in upstream/reports.toml"
        for row in outcomes
        if row and re.search(r"nightly|\d\.\d", row.says)
    ]


# Mutations

RECORD = "notebooks/records/sweep-tensorflow-2.21.json"
SETTLED = "helpers/strategy_clinic/sweep/settled.toml"


def change_a_cell(change):
    def mutation(root):
        path = root / RECORD
        stored = json.loads(path.read_text())
        change(stored)
        path.write_text(json.dumps(stored))

    mutation.__name__ = change.__name__
    return mutation


def lose_a_cell(stored):
    stored["cells"].pop()


def code_changes(stored):
    stored["cells"][0]["code"] = "0"


def another_cell(stored):
    stored["cells"].append(stored["cells"][0] | {"cell": "loss/None/plain/fit/even/x2/keras3"})


def a_new_class(stored):
    stored["without_row"].append("Keras 3 losses.New")


def nothing_is_compared(stored):
    for cell in stored["cells"]:
        cell["outcome"] = "unavailable"


def one_device_no_longer_raises(stored):
    name = "saver/save .h5/Adam same/fit/even/x2/keras3"
    cell = next(each for each in stored["cells"] if each["cell"] == name)
    cell |= {"outcome": "differs", "values": ["weights"]}


def rounding_is_not_measured(stored):
    for cell in stored["cells"]:
        cell["rounding"] = None


def a_metric_differs(stored):
    cell = next(each for each in stored["cells"] if each["cell"].startswith("metric/"))
    cell |= {"outcome": "differs", "values": ["metric"]}


MUTATIONS = [
    *[
        ("law_recorded", change_a_cell(change))
        for change in (lose_a_cell, code_changes, another_cell, a_new_class, nothing_is_compared)
    ],
    ("law_settled", change_a_cell(a_metric_differs)),
    ("law_words", change_a_cell(one_device_no_longer_raises)),
    ("law_words", edit(SETTLED, "of an empty part are NaN", "are NaN; the nightly is right")),
    ("law_measured_tolerances", change_a_cell(rounding_is_not_measured)),
    (
        "law_measured_tolerances",
        edit(
            "helpers/strategy_clinic/sweep/items.py", "BATCH = 16", "BATCH = 16\nTOLERANCE = 1e-4"
        ),
    ),
    ("law_settled", edit(SETTLED, '"optimizer/*/clip*/keras3"', '"optimizer/*/clip*/keras9"')),
    ("law_explanations", edit(SETTLED, '"optimizer/*/accumulation/*/keras3"', '"nothing"')),
    ("law_explanations", edit(SETTLED, 'report = "dropout_same_mask"', 'report = "unheard_of"')),
    ("law_explanations", edit(SETTLED, 'report = "dropout_same_mask"', "")),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())
