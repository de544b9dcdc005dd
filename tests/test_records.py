"""Records are made by runs, and a check says in words what is no longer as recorded. Kernels are real."""

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import nbformat
import pytest
from conftest import FAILS_OTHERWISE, changed
from strategy_clinic import Setup, cli
from strategy_clinic.base import files
from strategy_clinic.modes import registry
from strategy_clinic.records import atlas, compare, junit, measure, store
from strategy_clinic.rendering import render, sources
from strategy_clinic.rendering.mode_notebooks import mode_notebooks
from strategy_clinic.setups import runtime

RECORD = "notebooks/records/cpu-keras3.json"
FM01 = "notebooks/fm01_host_read_in_replica.ipynb"
NAME = f"{runtime.kind()}-keras3"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(runtime.kind() != "cpu", reason="the committed records are a CPU's"),
]


@pytest.fixture
def few(project, monkeypatch):
    """fm01 under two setups only and without its table, exercise and panel, so that a run is short.

    Without version records, the record is the nearest one for every version.
    """
    for path in (project / "notebooks" / "records").glob("tensorflow-*"):
        path.unlink()
    whole = store.grid_of
    for module in (measure, store):
        monkeypatch.setattr(module, "grid_of", lambda mode, base: whole(mode, base)[:2])
    record = json.loads((project / RECORD).read_text())
    listed = [line for line in record["verdicts"] if line["mode"] == "fm01"][:2]
    (project / RECORD).write_text(json.dumps(record | {"verdicts": listed}))
    notebook = nbformat.read(project / FM01, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code" and measure.without_steps_for_readers(cell) != cell.source:
            cell.source, cell.outputs = measure.without_steps_for_readers(cell), []
    (project / FM01).write_text(render.as_text(notebook))
    return project


@pytest.mark.parametrize(
    "tag, old, new, counts",
    [
        ("bootstrap", "import importlib", "import io, importlib", False),
        ("parameters", "[2, 3]", "[2, 3, 4]", False),
        ("parameters", "keras = 3", "keras = 2", True),
        ("exercise", "import tensorflow", "import  tensorflow", True),
    ],
)
def test_code_is_what_somebody_has_typed(tag, old, new, counts):
    """Another set-up cell, or more choices in a form, is no reason to record all modes again."""
    notebook = nbformat.read(files.ROOT / FM01, as_version=4)
    before = store.code_of(notebook)
    cell = next(cell for cell in notebook.cells if tag in sources.tags(cell))
    assert old in cell.source
    cell.source = cell.source.replace(old, new)
    assert (store.code_of(notebook) != before) is counts


def suites(report) -> dict:
    """The suites of a JUnit report by name, whose counts must be those of their cases."""
    found = list(ElementTree.parse(report).getroot())
    for suite in found:
        counted = {"tests": len(suite), "failures": len(suite.findall("*/failure"))}
        counted |= {"skipped": len(suite.findall("*/skipped"))}
        assert {name: int(suite.get(name)) for name in counted} == counted
    return {suite.get("name"): suite for suite in found}


def failures(suite) -> dict[str, str]:
    ended = {case.get("name"): case.find("failure") for case in suite}
    return {name: failure.get("message") for name, failure in ended.items() if failure is not None}


def test_check_of_an_unchanged_mode_finds_nothing(few, capsys):
    """By the record that a run has just made of it, which a second run leaves alone."""
    (few / RECORD).unlink()
    assert cli.main(["record", "fm01"]) == 0
    record = store.read_record(NAME)
    assert [verdict.broken for verdict in record.verdicts] == ["raises"] * 2
    assert set(record.versions) >= {"tensorflow", "keras"}
    assert cli.main(["record", "fm01"]) == 0
    assert "1 of 1 modes are recorded already" in capsys.readouterr().out
    assert cli.main(["check", "fm01", "--junit", str(few / "report.xml")]) == 0
    assert "every output and every verdict is as stored" in capsys.readouterr().out
    found = suites(few / "report.xml")
    assert set(found) == {"outputs", "verdicts-keras3"}
    assert [failures(suite) for suite in found.values()] == [{}, {}]
    cells = [each for each in nbformat.read(few / FM01, 4).cells if each.cell_type == "code"]
    assert len(found["outputs"]) == len(cells)
    names = {(each.get("classname"), each.get("name")) for each in found["verdicts-keras3"]}
    assert ("fm01", "one_device x1, saved as keras, Keras 3") in names
    assert len(names) == 2


def test_check_says_what_differs(few, capfd):
    changed(few / RECORD, '"broken": "raises"', '"broken": "<works\\u0007>"', 1)
    changed(few / FM01, "FM01 fixed (", "FM01 mended (")
    assert cli.main(["check", "fm01", "--junit", str(few / "report.xml")]) == 1
    said = capfd.readouterr().out
    where = "fm01 default x1, saved as keras, Keras 3: the record says broken <works"
    assert where in said and ">, this run says raises" in said
    assert "stored outputs differ" in said
    found = suites(few / "report.xml")
    told = failures(found["verdicts-keras3"])
    assert set(told) == {"default x1, saved as keras, Keras 3"}
    assert "the record says broken <works\ufffd>, this run says raises" in " ".join(told.values())
    assert len(failures(found["outputs"])) == 1


@pytest.mark.thorough
def test_failing_notebook_is_a_difference(few, capsys):
    changed(few / FM01, *FAILS_OTHERWISE)
    assert cli.main(["check", "fm01", "fm17", "--junit", str(few / "report.xml")]) == 1
    found = suites(few / "report.xml")["verdicts-keras3"]
    assert "FM01 disagrees with its run at" in failures(found)["Keras 3"]
    assert "fm17" in {each.get("classname") for each in found}


def test_what_cannot_run_here_is_skipped_in_the_report():
    made = compare.Comparison("fm01", "tpu x8", unavailable="no TPU").case()
    assert made.find("skipped").get("message") == "no TPU"
    differs = compare.Comparison("fm01", "tpu x8", "was executed", "no TPU").case()
    assert differs.find("skipped") is None and differs.find("failure") is not None


def test_outputs_without_a_report_are_an_error(tmp_path):
    (suite,) = junit.read_suites(tmp_path / "absent.xml")
    assert suite.get("errors") == "1" and suite.find("testcase/error") is not None


def test_unwritable_report_is_refused_before_any_run(few, capsys):
    for path in (few, few / "absent" / "report.xml"):
        assert cli.main(["check", "fm01", "--junit", str(path)]) == 2
    said = capsys.readouterr()
    assert said.err.count("cannot be written") == 2 and said.out == ""


def test_unrecorded_runtime_is_compared_with_declarations(few, tmp_path, capsys):
    (few / RECORD).unlink()
    assert cli.main(["check", "fm01", "--save", str(tmp_path / "found")]) == 0
    assert f"{NAME} has not been recorded yet, so its verdicts" in capsys.readouterr().out
    found = json.loads((tmp_path / "found" / f"{NAME}.json").read_text())
    assert len(found["verdicts"]) == 2 and not (few / RECORD).exists()


def test_a_verdict_that_is_not_as_declared_is_a_problem():
    values = {"broken": "works", "fixed": "works", "evidence": "executed", "says": ""}
    verdicts = [
        store.RecordedVerdict("fm01", **Setup("mirrored", 2).as_dict(), agrees=agrees, **values)
        for agrees in (False, True)
    ]
    measured = store.Measured(verdicts)
    differs, agrees = compare.compared(None, registry.mode_by_id("fm01"), 3, measured)
    assert differs.problem.endswith("not as declared: broken works, fixed works (no message)")
    assert agrees.problem == ""


def test_a_mode_that_is_not_recorded_says_how_to_record_it():
    record = store.read_record(NAME)
    del record.modes["fm01"]
    (found,) = compare.compared(record, registry.mode_by_id("fm01"), 3, store.Measured([]))
    assert found.problem == "fm01 is not in the record; run: clinic record fm01 --keras 3"


def test_a_record_of_other_versions_starts_anew(few):
    changed(few / RECORD, '"tensorflow": "', '"tensorflow": "1.')
    assert cli.main(["record", "fm01"]) == 0
    assert list(store.read_record(NAME).modes) == ["fm01"]


def test_recording_one_mode_again_leaves_the_others(few):
    changed(few / RECORD, '"broken": "raises"', '"broken": "works"', 1)
    before = set(store.read_record(NAME).modes)
    assert cli.main(["record", "fm01", "--again"]) == 0
    assert set(store.read_record(NAME).modes) == before
    outcomes = [each.broken for each in store.read_record(NAME).verdicts if each.mode == "fm01"]
    assert outcomes == ["raises"] * 2


def test_a_program_that_crashes_leaves_the_other_setups_their_verdicts(few):
    """The lines of a setup are in the program, so that it can end in another way under each."""
    ends = "import os\\n"
    ends += "if 'OneDeviceStrategy(' + chr(34) in open(__file__).read():\\n    os._exit(3)\\n"
    changed(few / FM01, '"%%program broken\\n', f'"%%program broken\\n{ends}')
    (few / RECORD).unlink()
    assert cli.main(["record", "fm01"]) == 0
    found = {verdict.strategy: verdict.broken for verdict in store.read_record(NAME).verdicts}
    assert found == {"default": "raises", "one_device": "crashes"}


def test_a_notebook_that_fails_is_not_recorded(few, capsys):
    changed(few / FM01, *FAILS_OTHERWISE)
    before = (few / RECORD).read_text()
    assert cli.main(["record", "fm01", "--again"]) == 2
    assert "FM01 under Keras 3: FM01 disagrees with its run at" in capsys.readouterr().err
    assert (few / RECORD).read_text() == before


# The atlas


def test_atlas_page_has_all_cells_and_working_links(project):
    page = project / "atlas.html"
    assert cli.main(["atlas", str(page)]) == 0
    text = page.read_text()
    cells = re.findall(r"<td data-strategy='(\w+)'><a href='([^']+)'", text)
    listed = atlas.atlas_rows()
    assert len(cells) == len(listed) * len(atlas.places_of(listed))
    assert all((project / link).exists() for _, link in cells)
    # Messages may name addresses, and the reasons of differences link to their sources; the page loads nothing.
    loaded = r"(<(?!a\b)[^>]*\bhref|src)\s*=\s*.?http|url\(\s*.?http|@import"
    assert not re.search(loaded, text) and re.search(loaded, "<link href='https://x'>")
    assert "gpu-keras2: not recorded yet" in text
    for mode in registry.modes():
        assert re.search(f"<li>{mode.id} {mode.slug}, cpu, Keras (2 and )?3[:;] ", text)


def test_runtimes_with_the_same_outcomes_are_one_row():
    rows = [row for row in atlas.atlas_rows() if row.mode.id == "fm02"]
    assert [row.runtimes_in_words for row in rows] == ["cpu, Keras 2 and 3; gpu, Keras 3"]
    apart = [row for row in atlas.atlas_rows() if row.mode.id == "fm32"]
    assert {row.runtimes for row in apart} == {("cpu-keras3", "gpu-keras3"), ("cpu-keras2",)}
    assert ("tpu", 1) not in atlas.places_of(atlas.atlas_rows())


def test_a_runtime_that_recorded_some_setups_is_in_the_row_that_it_agrees_with():
    (mode,) = (each for each in registry.modes() if each.id == "fm37")
    whole = store.read_record("cpu-keras3")
    for outcome, words in (("wrong", ["cpu, Keras 3; gpu, Keras 3 in part"]), ("works", 2)):
        own = next(each for each in whole.of_mode("fm37").values() if each.broken == "wrong")
        part = replace(whole, runtime="gpu-keras3", verdicts=[replace(own, broken=outcome)])
        rows = atlas.rows_of(mode, [whole, part], {})
        assert words in ([row.runtimes_in_words for row in rows], len(rows))


def test_a_mode_recorded_under_some_of_its_setups_is_recorded_again():
    record, (wanted,) = store.read_record("cpu-keras3"), mode_notebooks(["fm37"])
    assert record.holds(wanted)
    record.verdicts.remove(next(each for each in record.verdicts if each.mode == "fm37"))
    assert not record.holds(wanted)


def test_what_a_cell_of_the_atlas_says_is_escaped():
    evil = "<script>alert(1)</script>' onload='y\""
    row = atlas.atlas_rows()[0]
    mode = replace(row.mode, title=evil)
    page = atlas.table_html(
        [atlas.AtlasRow(mode, (evil,), {("mirrored", 2): {evil: "raises"}})], evil
    )
    assert "&lt;script&gt;" in page and "<script" not in page and "' onload" not in page


def test_the_filters_of_the_notebook_are_the_same():
    listed = atlas.atlas_rows(
        {"document": "004", "runtime": "cpu-keras3", "strategy": "mirrored", "format": "h5"}
    )
    row = next(row for row in listed if row.mode.id == "fm25")
    assert {place: atlas.one_outcome(found) for place, found in row.outcomes.items()} == {
        ("mirrored", 1): "works",
        ("mirrored", 2): "wrong",
        ("mirrored", 4): "wrong",
        ("mirrored", 8): "wrong",
    }


def test_without_records_there_is_no_atlas(project, capsys):
    for path in (project / "notebooks" / "records").iterdir():
        path.unlink()
    assert cli.main(["atlas", str(project / "atlas.html")]) == 2
    assert "run: clinic record" in capsys.readouterr().err
    assert not (project / "atlas.html").exists()
