"""Version records are stored whole, compared with the nearest version, and shown as the atlas over versions."""

import copy
import shutil
from dataclasses import replace

import pytest
from law import all_tests_of, edit
from strategy_clinic.base.errors import UserError
from strategy_clinic.modes import registry
from strategy_clinic.records import compare, junit, store, version_records, versions_table
from strategy_clinic.records.version_records import VersionRecord, VersionVerdict
from strategy_clinic.rendering.mode_notebooks import mode_notebooks
from strategy_clinic.setups import runtime


def law_version_records() -> list[str]:
    """Every version record holds each of its modes, which exist, on both versions of Keras."""
    return [
        f"lane {path.stem}: {problem}; run: make lanes"
        for path in sorted(store.records_folder().glob("tensorflow-*"))
        for problem in problems_of(version_records.parse_version_record(path.read_text()))
    ]


def problems_of(record: VersionRecord) -> list[str]:
    modes = {mode.id for mode in registry.modes()}
    problems = [f"there is no mode {mode}" for mode in sorted(set(record.codes) - modes)]
    wanted = {(mode, keras) for mode in record.codes for keras in runtime.KERAS_VERSIONS}
    lost = sorted(wanted - set(record.verdicts))
    return problems + [f"no verdict of {mode} on Keras {keras}" for mode, keras in lost]


RECORD = "notebooks/records/tensorflow-2.20.json"
MUTATIONS = [
    ("law_version_records", edit(RECORD, '"codes": {', '"codes": {"fm99": "0",')),
    (
        "law_version_records",
        edit(RECORD, '"mode": "fm25", "keras": 2', '"mode": "fm99", "keras": 2'),
    ),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())


# As files


VERSIONS = {"tensorflow": "2.19.1", "keras": "3.10.0", "tf_keras": "2.19.0"}


@pytest.fixture(scope="module")
def plain_machine() -> VersionRecord:
    return version_records.of_plain_machine()


@pytest.fixture
def recorded(tmp_path, monkeypatch, plain_machine) -> VersionRecord:
    """The records of a plain machine as a version record, in a folder without any other."""
    for path in store.records_folder().glob("cpu-*"):
        shutil.copy(path, tmp_path)
    for module in (version_records, store):
        monkeypatch.setattr(module, "records_folder", lambda: tmp_path)
    return copy.deepcopy(plain_machine)


@pytest.fixture
def here(monkeypatch):
    """Sets the version of TensorFlow that is installed here, on a plain machine."""
    monkeypatch.setattr(runtime, "kind", lambda: "cpu")

    def set_version(tensorflow: str) -> None:
        versions = VERSIONS | {"tensorflow": tensorflow}
        monkeypatch.setattr(version_records, "versions_here", lambda: versions)

    return set_version


def on(version: str, record: VersionRecord, **changes) -> VersionRecord:
    """The record of another version, with other verdicts of some modes on Keras 3."""
    verdicts = record.verdicts | {
        (mode, 3): replace(record.verdicts[mode, 3], **values) for mode, values in changes.items()
    }
    return replace(record, versions=VERSIONS | {"tensorflow": version}, verdicts=verdicts)


def written(*records: VersionRecord) -> None:
    for record in records:
        version_records.write_version_record(record)


def test_version_records_are_read_as_they_were_written(recorded):
    older = on("2.19.1", recorded, fm01={"broken": "works", "says": ""})
    other = on("2.20.0", recorded, fm25={"says": "in other words", "page": "differs"})
    newer = on("2.23.0.dev20261026", recorded, fm32={"broken": "works", "says": ""})
    written(newer, older, other)
    assert version_records.version_records() == [older, other, recorded, newer]
    names = [record.name for record in version_records.version_records()]
    assert names == ["2.19", "2.20", "2.21", "nightly"]


def test_a_verdict_on_an_older_page_is_left_out(recorded):
    older = on("2.20.0", recorded)
    older.codes["fm25"] = "of before"
    written(older)
    kept = version_records.version_records()[0]
    assert kept.name == "2.20" and ("fm25", 3) not in kept.verdicts
    assert set(recorded.verdicts) - set(kept.verdicts) == {("fm25", 2), ("fm25", 3)}
    written(replace(older, codes=dict.fromkeys(older.codes, "of before")))
    assert [record.name for record in version_records.version_records()] == [recorded.name]


def test_what_is_recorded_adds_to_verdicts_on_older_pages(recorded, here):
    older = on("2.20.0", recorded)
    older.codes["fm25"] = "of before"
    written(older)
    here("2.20.0")
    assert version_records.version_record_here() == older
    other = VERSIONS | {"tensorflow": "2.20.0", "keras": "3.12.0"}
    written(replace(older, versions=other))
    assert version_records.version_record_here().codes == {}


def test_a_version_record_needs_no_other_one(recorded):
    other = on("2.20.0", recorded, fm25={"says": "in other words"})
    written(other, on("2.19.1", recorded))
    version_records.version_file("2.19").unlink()
    text = version_records.version_file("2.20").read_text()
    assert version_records.parse_version_record(text) == other


def test_each_verdict_is_one_line_of_the_file(recorded):
    written(on("2.20.0", recorded))
    lines = version_records.version_file("2.20").read_text().splitlines()
    assert sum(line.startswith('{"mode": "fm') for line in lines) == 2 * len(registry.modes())


@pytest.mark.slow
def test_versions_are_recorded_once(recorded, here, capsys):
    """Real kernels, under another version's name; both versions of Keras of a mode that takes little time."""
    here("2.20.0")
    chosen = mode_notebooks(["fm17"])
    version_records.record_versions(chosen)
    record = version_records.version_records()[0]
    assert record.name == "2.20" and set(record.verdicts) == {("fm17", 2), ("fm17", 3)}
    outcomes = {
        (verdict.broken, verdict.fixed, verdict.page) for verdict in record.verdicts.values()
    }
    assert outcomes == {("raises", "works", "as stored")}
    version_records.record_versions(chosen)
    assert "1 of 1 modes are in the record of 2.20 already" in capsys.readouterr().out
    here("2.21.0")
    with pytest.raises(UserError, match="is what the records hold"):
        version_records.record_versions(chosen)


# The nearest, and what is news


@pytest.mark.parametrize(
    "version, name",
    [("2.21.0", None), ("2.21.1", None), ("2.22.0", None), ("2.20.1", "2.20"), ("2.18.0", "2.19")]
    + [("2.23.0.dev20270101", "nightly"), ("2.24.0", "nightly")],
)
def test_the_nearest_version(recorded, here, version, name):
    written(on("2.20.0", recorded), on("2.19.1", recorded), on("2.23.0.dev1", recorded))
    here(version)
    found = version_records.nearest(3)
    assert isinstance(found, store.Record if name is None else VersionRecord)
    assert name is None or found.name == name


def test_news_is_one_line_for_each_mode(recorded, here):
    written(on("2.20.0", recorded, fm32={"says": "a placeholder has no value"}))
    here("2.20.1")
    stored = version_records.nearest(3)
    changes = {"fm01": {}, "fm30": {"says": "other words"}, "fm32": {"broken": "works", "says": ""}}
    comparisons = []
    for name, values in changes.items():
        mode, verdict = registry.mode_by_id(name), stored.verdicts[name, 3]
        measured = measured_now(mode, replace(verdict, **values))
        comparisons += compare.compared(stored, mode, 3, measured)
    first, second = compare.news(comparisons)
    assert first.startswith("news: fm30 default x1") and first.endswith(" | other words)")
    assert "broken raises, this run says works (a placeholder has no value | no message)" in second


def measured_now(mode, verdict: VersionVerdict) -> store.Measured:
    setup = version_records.own_setup_of(mode, 3)
    values = {name: getattr(verdict, name) for name in ("broken", "fixed", "evidence", "says")}
    line = store.RecordedVerdict(mode.id, **setup.as_dict(), agrees=False, **values)
    return store.Measured([line])


def test_unrecorded_mode_is_compared_with_its_declaration(recorded):
    mode = registry.mode_by_id("fm01")
    stored = on("2.20.0", replace(recorded, verdicts={}))
    now = measured_now(mode, recorded.verdicts["fm01", 3])
    (found,) = compare.compared(stored, mode, 3, now)
    assert "not as declared" in found.problem
    agreeing = replace(now, verdicts=[replace(now.verdicts[0], agrees=True)])
    (found,) = compare.compared(stored, mode, 3, agreeing)
    assert found.problem == ""


def test_page_known_to_differ_is_no_failure(recorded, here):
    def outputs():
        name = "notebooks.fm32_optimizer_built_in_replica.ipynb"
        failing = junit.case(name, "Cell 3", failure="x")
        return [junit.suite("outputs", [failing, junit.case("notebooks.atlas.ipynb", "Cell 1")])]

    written(on("2.20.0", recorded, fm32={"page": "differs"}), on("2.19.1", recorded))
    here("2.19.1")
    assert not compare.pages_as_stored(outputs())
    here("2.20.0")
    suites = outputs()
    assert compare.pages_as_stored(suites)
    assert (suites[0].get("failures"), suites[0].get("skipped")) == ("0", "1")
    assert suites[0].find("testcase/skipped").get("message") == "x"
    assert not junit.passed(junit.read_suites(store.records_folder() / "no.xml"), {"fm32"})


def test_a_second_difference_of_a_mode_is_counted():
    found = [compare.Comparison("fm01", "x", "one"), compare.Comparison("fm01", "y", "two")]
    assert compare.news([*found, compare.Comparison("fm02", "z")]) == ["news: one (and 1 more)"]


# The atlas over versions


@pytest.fixture
def two(recorded) -> list[versions_table.VersionsRow]:
    """An older version with another message of one mode, and a nightly on which another mode is gone."""
    older = on("2.20.0", recorded, fm25={"says": "<b>other</b> words"})
    newer = on("2.23.0.dev1", recorded, fm32={"broken": "works", "says": ""})
    only = {place: verdict for place, verdict in newer.verdicts.items() if place[0] == "fm32"}
    written(older, replace(newer, codes={"fm32": recorded.codes["fm32"]}, verdicts=only))
    return versions_table.versions_rows(version_records.version_records())


def test_versions_with_the_same_verdicts_are_one_cell(two):
    rows = {(row.mode.id, row.keras): row for row in two}
    names = {place: [period.name for period in row.periods] for place, row in rows.items()}
    assert names["fm32", 3] == ["2.20 to 2.21", "nightly"]
    assert names["fm25", 3] == ["2.20", "2.21", "nightly"]
    assert names["fm01", 3] == ["2.20 to 2.21", "nightly"]
    assert rows["fm01", 3].periods[1].verdict is None and not rows["fm01", 3].changed
    assert [place for place, row in rows.items() if row.changed] == [("fm25", 3), ("fm32", 3)]


def test_a_version_without_a_record_is_no_change(recorded):
    older, between = on("2.18.1", recorded), on("2.20.0", recorded)
    between = replace(
        between,
        verdicts={place: each for place, each in between.verdicts.items() if place != ("fm25", 3)},
    )
    written(older, between)
    rows = versions_table.versions_rows(version_records.version_records())
    (row,) = (each for each in rows if (each.mode.id, each.keras) == ("fm25", 3))
    assert [period.verdict is None for period in row.periods] == [False, True, False]
    assert not row.changed


def test_changes_are_also_sentences(two):
    first, second, rest = versions_table.versions_sentences(two)
    assert first.startswith(
        "fm25 load_outside_scope, Keras 3: on 2.20 the broken code is wrong (<b>"
    )
    assert second.endswith("; on nightly the broken code works (no message)")
    assert "fm01 (3), fm01 (2)" in rest and "fm25 (3)" not in rest


def test_cell_opens_to_its_verdicts(two):
    page = versions_table.versions_html("../")
    assert "aria-label='fm32 optimizer_built_in_replica, Keras 3, nightly: works, changed'" in page
    assert "Changed between 2.21 and nightly" in page and "broken: raises, then works" in page
    assert "&lt;b&gt;other&lt;/b&gt; words" in page and "<b>other" not in page
    assert "– not recorded" in page and "href='../fm32_optimizer_built_in_replica.ipynb'" in page
    changed, same = page.split("<details><summary>The ")[:2]
    assert changed.count("<tr>") == 1 + 2
    assert same.count("<tr>") == 1 + 2 * len(registry.modes()) - 2


def test_another_page_is_a_change():
    one = VersionVerdict("raises", "works", "executed", "x", "as stored")
    other = replace(one, page="differs")
    expected = ["page: as stored, then differs"]
    assert versions_table.changes(one, other) == expected
    assert versions_table.changes(one, one) == []
