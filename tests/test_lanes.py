"""Lanes are kept as differences from their neighbours and read back whole; none is older than the code it is of."""

import json
import shutil
from dataclasses import replace

import pytest
from law import all_tests_of, edit
from strategy_clinic.base import files
from strategy_clinic.modes import registry
from strategy_clinic.records import compare, junit, store, version_records, versions_table
from strategy_clinic.rendering import sources
from strategy_clinic.setups import runtime


def law_lanes() -> list[str]:
    """Every lane is of the notebooks as they are now, and is kept beside the neighbour that it has now."""
    return [
        f"lane {lane.name}: {problem}; run: make lanes"
        for lane in version_records.lanes()
        for problem in problems_of(lane)
    ]


def problems_of(lane) -> list[str]:
    now = {mode.id: code_now(mode) for mode in registry.modes()}
    older = [mode for mode, code in lane.codes.items() if now.get(mode) != code]
    problems = [f"older than the code of {', '.join(older)}"] if older else []
    if version_records.lane_file(lane.name).exists():
        kept = json.loads(version_records.lane_file(lane.name).read_text())
        if (
            kept["neighbour"]
            != version_records.neighbour_of(lane, version_records.lanes()).versions
        ):
            problems.append("kept beside a neighbour that has other versions now")
    lost = [(mode, keras) for mode in lane.codes for keras in runtime.GENERATIONS]
    lost = [place for place in lost if place not in lane.verdicts]
    return problems + [f"no verdict of {mode} on Keras {keras}" for mode, keras in lost]


def code_now(mode) -> str:
    return store.code_of(sources.stored_notebook(files.ROOT / mode.notebook))


CPU3 = "notebooks/records/cpu-keras3.json"
LANE = "notebooks/records/lane-2.20.json"
MUTATIONS = [
    ("law_lanes", edit(LANE, '"fm25": "', '"fm25": "0')),
    (
        "law_lanes",
        edit(LANE, '"neighbour": {"tensorflow": "2.21', '"neighbour": {"tensorflow": "3.21'),
    ),
    (
        "law_lanes",
        edit("notebooks/fm25_load_outside_scope.ipynb", r"\ndevices = 2", r"\ndevices = 4"),
    ),
    ("law_lanes", edit(LANE, '"modes": {', '"modes": {"fm99": "0",')),
]

test_law, test_mutation, test_each_has_one = all_tests_of(globals())


# Folded and unfolded


VERSIONS = {"tensorflow": "2.19.1", "keras": "3.10.0", "tf_keras": "2.19.0"}


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """The records of a plain machine, in a folder without any lane beside them."""
    for path in store.records_folder().glob("cpu-*"):
        shutil.copy(path, tmp_path)
    for module in (version_records, store):
        monkeypatch.setattr(module, "records_folder", lambda: tmp_path)
    return version_records.lane_of_records()


def on(version: str, lane, **changes):
    """The lane of another version, with other verdicts of some modes on Keras 3."""
    verdicts = lane.verdicts | {
        (mode, 3): lane.verdicts[mode, 3] | found for mode, found in changes.items()
    }
    return replace(lane, versions=VERSIONS | {"tensorflow": version}, verdicts=verdicts)


def test_a_lane_holds_what_differs_and_is_read_back_whole(alone):
    other = on("2.20.0", alone, fm25={"says": "in other words"})
    older = on("2.19.1", other, fm01={"broken": "works", "says": ""})
    newer = on("2.23.0.dev20261026", alone, fm32={"broken": "works", "says": ""})
    version_records.write_lanes([newer, alone, older, other])
    found = version_records.lanes()
    assert [each.name for each in found] == ["2.19", "2.20", "2.21", "nightly"]
    assert [each.verdicts for each in found] == [
        older.verdicts,
        other.verdicts,
        alone.verdicts,
        newer.verdicts,
    ]
    kept = {
        name: json.loads(version_records.lane_file(name).read_text()) for name in ("2.19", "2.20")
    }
    assert [line["mode"] for line in kept["2.19"]["verdicts"]] == ["fm01"]
    assert [line["mode"] for line in kept["2.20"]["verdicts"]] == ["fm25"]
    assert kept["2.19"]["neighbour"]["tensorflow"] == "2.20.0"


def test_a_lane_between_two_others_takes_nothing_from_them(alone):
    older = on("2.19.1", alone, fm01={"broken": "works", "says": ""})
    version_records.write_lanes([older])
    version_records.keep_lane(on("2.20.0", alone, fm01={"broken": "works", "says": ""}))
    assert {each.name: each.verdicts["fm01", 3]["broken"] for each in version_records.lanes()} == {
        "2.19": "works",
        "2.20": "works",
        "2.21": "raises",
    }
    assert json.loads(version_records.lane_file("2.19").read_text())["verdicts"] == []


def test_a_lane_that_was_stopped_has_only_what_it_has_run(alone):
    version_records.write_lanes([replace(on("2.20.0", alone), codes={"fm01": alone.codes["fm01"]})])
    (found, _) = version_records.lanes()
    assert set(found.verdicts) == {("fm01", 2), ("fm01", 3)}


# The nearest, and what is news


@pytest.mark.parametrize(
    "here, lane",
    [("2.21.0", None), ("2.21.1", None), ("2.22.0", None), ("2.20.1", "2.20"), ("2.18.0", "2.19")]
    + [("2.23.0.dev20270101", "nightly"), ("2.24.0", "nightly")],
)
def test_the_nearest_version(alone, monkeypatch, here, lane):
    version_records.write_lanes(
        [on("2.20.0", alone), on("2.19.1", alone), on("2.23.0.dev1", alone)]
    )
    monkeypatch.setattr(version_records, "versions_here", lambda: VERSIONS | {"tensorflow": here})
    monkeypatch.setattr(runtime, "kind", lambda: "cpu")
    record, found = version_records.nearest_recorded(3)
    assert (found and found.name) == lane
    of_all = len(record["verdicts"]) > len(record["modes"])
    assert of_all is (lane is None)


def test_news_is_one_line_for_each_mode_with_both_messages(alone, monkeypatch):
    version_records.write_lanes([on("2.20.0", alone, fm32={"says": "a placeholder has no value"})])
    monkeypatch.setattr(
        version_records, "versions_here", lambda: VERSIONS | {"tensorflow": "2.20.1"}
    )
    monkeypatch.setattr(runtime, "kind", lambda: "cpu")
    record, _ = version_records.nearest_recorded(3)
    modes = {mode.id: mode for mode in registry.modes()}
    lines = {line["mode"]: line for line in record["verdicts"]}
    now = [lines["fm01"], lines["fm30"] | {"says": "other words"}, gone(lines["fm32"])]
    found = [
        each
        for line in now
        for each in compare.comparisons(
            record, modes[line["mode"]], [line], claims_of(record, line)
        )
    ]
    first, second = compare.news(found)
    assert first.startswith("news: fm30 default x1") and first.endswith(" | other words)")
    assert "broken raises, this run says works (a placeholder has no value | no message)" in second


def gone(line: dict) -> dict:
    return line | {"broken": "works", "says": ""}


def claims_of(record: dict, line: dict) -> dict:
    return record["modes"][line["mode"]]["claims"]


def test_a_page_that_is_known_to_differ_there_is_no_failure():
    def outputs():
        failing = junit.case(
            "notebooks.fm32_optimizer_built_in_replica.ipynb", "Cell 3", failure="x"
        )
        return [junit.suite("outputs", [failing, junit.case("notebooks.atlas.ipynb", "Cell 1")])]

    assert not junit.passed(outputs(), {"fm27"})
    told = outputs()
    assert junit.passed(told, {"fm32"})
    assert (told[0].get("failures"), told[0].get("skipped")) == ("0", "1")
    assert told[0].find("testcase/skipped").get("message") == "x"
    assert not junit.passed(junit.read_suites(store.records_folder() / "no.xml"), {"fm32"})


def test_another_claim_is_news_and_counted_with_its_mode():
    found = [compare.Comparison("fm01", "x", "one"), compare.Comparison("fm01", "y", "two")]
    assert compare.news([*found, compare.Comparison("fm02", "z")]) == ["news: one (and 1 more)"]


# The atlas over versions


@pytest.fixture
def two(alone):
    """An older lane with other words of one mode, and a nightly on which another is gone."""
    older = on("2.20.0", alone, fm25={"says": "<b>other</b> words"})
    newer = on("2.23.0.dev1", alone, fm32={"broken": "works", "says": ""})
    version_records.write_lanes([older, replace(newer, codes={"fm32": alone.codes["fm32"]})])


def test_lanes_that_say_the_same_are_one_cell(two):
    rows = {(row.mode.id, row.keras): row for row in versions_table.times_rows()}
    names = {place: [each.name for each in row.periods] for place, row in rows.items()}
    assert names["fm32", 3] == ["2.20 to 2.21", "nightly"]
    assert names["fm25", 3] == ["2.20", "2.21", "nightly"]
    assert names["fm01", 3] == ["2.20 to 2.21", "nightly"]
    found = rows["fm01", 3].periods[1].found
    assert found is None and not rows["fm01", 3].changed
    assert [place for place, row in rows.items() if row.changed] == [("fm25", 3), ("fm32", 3)]


def test_what_changed_is_told_in_words(two):
    first, second, rest = versions_table.times_sentences(versions_table.times_rows())
    assert first.startswith(
        "fm25 load_outside_scope, Keras 3: on 2.20 the broken code is silent (<b>"
    )
    assert second.endswith("; on nightly the broken code works (no message)")
    assert "fm01 (3), fm01 (2)" in rest and "fm25 (3)" not in rest


def test_a_cell_opens_to_its_verdicts_and_to_what_they_were(two):
    page = versions_table.times_html("../")
    assert "aria-label='fm32 optimizer_built_in_replica, Keras 3, nightly: works, changed'" in page
    assert "Changed between 2.21 and nightly" in page and "broken: raises, then works" in page
    assert "&lt;b&gt;other&lt;/b&gt; words" in page and "<b>other" not in page
    assert "– not recorded" in page and "href='../fm32_optimizer_built_in_replica.ipynb'" in page
    parts = page.split("<details><summary>The ")
    others = 2 * len(versions_table.all_declared()) - 2
    assert parts[0].count("<tr>") == 1 + 2 and parts[1].count("<tr>") == 1 + others


def test_a_change_of_a_claim_or_of_a_page_is_a_change():
    one = {"broken": "raises", "fixed": "works", "evidence": "executed", "says": "x"}
    one |= {"claims": {"000-C1": "half"}, "page": "as stored"}
    other = one | {"claims": {"000-C1": "true"}, "page": "differs"}
    told = ["page: as stored, then differs", "claim 000-C1: half, then true"]
    assert (
        versions_table.differences(one, other) == told
        and versions_table.differences(one, one) == []
    )


def test_what_a_stopped_lane_has_not_run_is_held_against_its_declaration():
    (mode, *_) = registry.modes()
    line = {
        **dict(zip(store.KEY, version_records.own_place(mode, 3))),
        "keras": 3,
        "broken": "works",
    }
    line |= {"fixed": "works", "says": "", "agrees": False}
    stopped = {"lane": "2.20", "modes": {}, "verdicts": []}
    (found,) = compare.comparisons(stopped, mode, [line], {})
    assert "not as declared" in found.problem
    (found,) = compare.comparisons(stopped, mode, [line | {"agrees": True}], {})
    assert found.problem == ""
