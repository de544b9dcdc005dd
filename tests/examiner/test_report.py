"""Reports of an examination: as text, JSON and SARIF. No TensorFlow."""

import copy
import json
import os
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from conftest import ROOT
from recorded import run, stack
from strategy_clinic.examiner.cells import Cell, listing_of
from strategy_clinic.examiner.edits import Edit, Repair
from strategy_clinic.examiner.findings import (
    DIVERGES,
    FRAMEWORK,
    Evidence,
    Examination,
    Finding,
    Location,
    RunMade,
    Text,
)
from strategy_clinic.examiner.frontends import program_input
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.report import explanation, html, machine_readable, text
from strategy_clinic.observer.events import Outcome

# As published by OASIS: github.com/oasis-tcs/sarif-spec, sarif-2.1/schema; under the terms of its LICENSE.md.
SCHEMA = json.loads((ROOT / "tests" / "sarif-schema-2.1.0.json").read_text())


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("\n" * 11 + '    name = "weights"\n')
    return str(path)


def finding(path="/program/train.py", **changes):
    usual = {
        "mode": "fm05",
        "location": Location(stack(path, 12)),
        "evidence": Evidence.OBSERVED,
        "message": Text("no checkpoint holds it"),
        "proof": Text("observed on 2 devices: ", Location(stack(path, 9)), " saved"),
        "devices": (2,),
    }
    return Finding(**usual | changes)


NOWHERE = finding(mode="fm37", location=Location(), evidence=Evidence.COMPARED)


def examination(*findings, **options):
    return Examination("train.py", [run(keras=3, seconds=1.25)], list(findings), **options)


def made(words="on 2 devices (watched)", **changes):
    usual = RunMade(words, Role.WATCHED, 2, Outcome.FINISHED, 1.25, 3)
    return replace(usual, **changes)


# Text


def test_a_person_reads_line_mode_and_fix_first(script, monkeypatch):
    monkeypatch.chdir(os.path.dirname(script))
    lines = text.in_words(examination(finding(script))).splitlines()
    assert lines[0] == "train.py:12  fm05  no checkpoint holds it"
    assert lines[1] == '    name = "weights"'
    assert lines[2] == "    proof     observed on 2 devices: line 9 saved"
    assert [line.split()[0] for line in lines[2:]] == ["proof", "fix", "notebook"]


def test_a_finding_without_a_line_is_reported_all_the_same():
    words = text.in_words(examination(NOWHERE))
    assert words.startswith("(no line of the program)  fm37  no checkpoint holds it")


@pytest.mark.parametrize("mode", explanation.WITHOUT_NOTEBOOK)
def test_a_finding_that_no_notebook_explains_has_a_fix_and_no_link(mode, tmp_path):
    unexplained = examination(finding(mode=mode))
    lines = text.in_words(unexplained).splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["proof", "fix"]
    assert machine_readable.as_json(unexplained)["findings"][0]["notebook"] == ""
    sarif = machine_readable.as_sarif(unexplained, tmp_path)
    assert violations(sarif) == []
    assert "helpUri" not in sarif["runs"][0]["tool"]["driver"]["rules"][0]
    listing = listing_of("train.py", [Cell(0, "x")])
    card = html.card_of_program(unexplained, listing, "")
    assert explanation.explanation_of(mode).fix in card and "<a " not in card


def test_a_failure_that_is_none_of_the_modes_is_reported_with_its_line(script, monkeypatch):
    monkeypatch.chdir(os.path.dirname(script))
    failed = examination(failure="KeyError: 'x'", failed_at=Location(stack(script, 12)))
    assert text.in_words(failed).endswith("none of the modes: KeyError: 'x' (train.py:12)")
    in_cell = Location(stack("notes.ipynb", 2), cell=3, code="x")
    failed = examination(failure="KeyError: 'x'", failed_at=in_cell)
    assert text.in_words(failed).endswith("none of the modes: KeyError: 'x' (cell 3, line 2)")
    assert text.failure_of(examination(failure="killed")) == "killed"


def test_no_character_of_a_program_controls_a_terminal():
    steering = finding(message=Text("x\x1b[2Jy"), proof=Text("raised\x07 on 2 devices"))
    words = text.in_words(examination(steering, failure="a\x1b[31mb\nc"))
    assert all(line.isprintable() for line in words.splitlines())


@pytest.mark.parametrize(
    "result, status",
    [
        (examination(finding()), 1),
        (examination(), 0),
        (examination(failure="raised"), 3),
        (examination(stopped=True), 130),
        (examination(finding(), stopped=True), 1),
        (examination(unseen=["a process was not observed"]), 4),
        (examination(finding(), unseen=["a process was not observed"]), 1),
        (examination(failure="raised", unseen=["a process was not observed"]), 3),
        (examination(stopped=True, unseen=["a process was not observed"]), 130),
    ],
)
def test_exit_status(result, status):
    assert text.exit_status(result) == status


def test_what_was_not_seen_is_no_clean_bill(tmp_path):
    told = examination(unseen=["a process <x> was not observed"])
    words = text.in_words(told)
    assert words.startswith(
        "nothing found in a run without a strategy, but not everything was seen\n"
    )
    assert words.endswith("not seen: a process <x> was not observed")
    card = html.card_of_program(told, listing_of("train.py", [Cell(0, "x")]), "")
    assert "but not everything was seen" in card and "data-clinic-outcome='unavailable'" in card
    assert "Not seen: a process &lt;x&gt; was not observed." in card
    assert machine_readable.as_json(told)["unseen"] == told.unseen
    sarif = machine_readable.as_sarif(told, tmp_path)
    assert violations(sarif) == []
    (invocation,) = sarif["runs"][0]["invocations"]
    (said,) = invocation["toolExecutionNotifications"]
    assert (said["level"], said["message"]["text"]) == ("warning", told.unseen[0])
    assert invocation["exitCode"] == 4


def test_a_path_is_encoded_where_it_is_an_address(tmp_path):
    for folder in (tmp_path, tmp_path / "my run"):
        path = tmp_path / "my run" / "größe #1.py"
        uri = machine_readable.artifact(path, folder)["artifactLocation"]["uri"]
        assert path.as_uri().endswith(f"/{uri}")


def test_all_runs_are_listed():
    discarded = made("on 1 device (compared)", devices=1, role=Role.COMPARED, discarded=True)
    told = examination(
        runs=[made(), discarded, made("with v", task="worker 0"), made("again"), made("again")]
    )
    said = (
        "the program ran 5 times: on 2 devices (watched); on 1 device (compared), discarded; "
        "with v, worker 0; again, 2 times"
    )
    assert text.in_words(told).endswith(said)
    card = html.card_of_program(told, listing_of("train.py", [Cell(0, "x")]), "")
    assert "<summary>the program ran 5 times</summary>" in card
    assert "on 1 device (compared), discarded\nwith v, worker 0" in card
    written = machine_readable.as_json(told)["runs"]
    assert [each["discarded"] for each in written] == [False, True, False, False, False]


# JSON


def test_json_has_the_promised_shape(script):
    told = examination(finding(script), runs=[made()])
    written = json.loads(json.dumps(machine_readable.as_json(told)))
    assert list(written) == [
        "program", "runs", "findings", "unseen", "notes", "counts", "failure", "stopped",
    ]  # fmt: skip
    ended = {"devices": 2, "keras": 3, "ended": "finished", "seconds": 1.2}
    role = {"role": "watched", "says": "on 2 devices (watched)", "discarded": False}
    assert written["runs"] == [ended | role]
    names = ["mode", "file", "line", "code", "says", "proof", "devices", "fix", "notebook"]
    assert list(written["findings"][0]) == names
    assert written["findings"][0]["code"] == 'name = "weights"'
    assert written["findings"][0]["proof"] == "observed on 2 devices: line 9 saved"
    assert written["findings"][0]["notebook"] == "notebooks/fm05_untracked_variable.ipynb"


def test_json_has_the_notes_and_the_failure(script):
    told = examination(
        notes=["a note"], failure="KeyError: 'x'", failed_at=Location(stack(script, 12))
    )
    written = machine_readable.as_json(told)
    assert (written["notes"], written["stopped"]) == (["a note"], False)
    place = {"file": script, "line": 12, "code": 'name = "weights"'}
    assert written["failure"] == {"says": "KeyError: 'x'", **place}
    assert machine_readable.as_json(examination())["failure"] is None


@pytest.mark.parametrize("mode", [DIVERGES, FRAMEWORK])
def test_a_finding_may_have_a_fix_of_its_own(mode, script):
    location = Location(stack(script, 12))
    told = examination(finding(mode=mode, location=location, fix="do so"))
    assert text.exit_status(told) == 1
    assert "fix       do so" in text.in_words(told)
    (written,) = machine_readable.as_json(told)["findings"]
    assert (written["mode"], written["fix"]) == (mode, "do so")
    card = html.card_of_program(told, listing_of("train.py", [Cell(0, "x")]), "")
    assert f"data-clinic-mode='{mode}'" in card and "do so" in card


# SARIF


def violations(sarif: dict) -> list[str]:
    errors = jsonschema.Draft4Validator(SCHEMA).iter_errors(json.loads(json.dumps(sarif)))
    return [f"{list(error.absolute_path)}: {error.message}" for error in errors]


@pytest.mark.parametrize("findings", [(), (finding(),), (finding(), NOWHERE, finding())], ids=len)
def test_sarif_is_what_its_schema_asks_for(findings):
    sarif = machine_readable.as_sarif(examination(*findings), ROOT)
    assert violations(sarif) == []
    assert len(sarif["runs"][0]["results"]) == len(findings)


@pytest.mark.parametrize(
    "path, value",
    [
        (("version",), "2.0.0"),
        (("runs", 0, "tool", "driver", "name"), None),
        (("runs", 0, "results", 0, "message"), "a text"),
        (("runs", 0, "results", 0, "level"), "bad"),
        (("runs", 0, "results", 0, "locations", 0, "physicalLocation", "region", "startLine"), 0),
        (("runs", 0, "results", 0, "mode"), "fm05"),
        (("runs", 0, "invocations", 0, "executionSuccessful"), "yes"),
        (("runs", 0, "invocations", 0, "toolExecutionNotifications", 0, "level"), "bad"),
    ],
    ids=lambda value: str(value)[-30:],
)
def test_what_the_schema_does_not_allow_is_noticed(path, value):
    sarif = copy.deepcopy(machine_readable.as_sarif(examination(finding(), notes=["a note"]), ROOT))
    place = sarif
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert len(violations(sarif)) == 1


def test_sarif_has_the_notes_and_the_failure(script, tmp_path):
    place = Location(stack(script, 12))
    told = examination(notes=["a note"], failure="KeyError: 'x'", failed_at=place)
    sarif = machine_readable.as_sarif(told, tmp_path)
    assert violations(sarif) == []
    (invocation,) = sarif["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    failure, note = invocation["toolExecutionNotifications"]
    assert (failure["level"], failure["message"]) == ("error", {"text": "KeyError: 'x'"})
    assert failure["locations"][0]["physicalLocation"]["region"] == {"startLine": 12}
    assert note == {"level": "note", "message": {"text": "a note"}}
    (well,) = machine_readable.as_sarif(examination(), ROOT)["runs"][0]["invocations"]
    assert well == {"exitCode": 0, "executionSuccessful": True, "toolExecutionNotifications": []}


def test_sarif_calls_what_the_framework_does_no_error():
    told = examination(
        finding(), finding(mode=DIVERGES), finding(mode=FRAMEWORK, by_framework=True)
    )
    results = machine_readable.as_sarif(told, ROOT)["runs"][0]["results"]
    assert [each["level"] for each in results] == ["error", "error", "warning"]


def test_sarif_names_the_rule_the_file_and_the_line(script, tmp_path):
    sarif = machine_readable.as_sarif(examination(finding(script), NOWHERE), tmp_path)["runs"][0]
    assert [rule["id"] for rule in sarif["tool"]["driver"]["rules"]] == ["fm05", "fm37"]
    place = sarif["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "train.py"}, "region": {"startLine": 12}}
    assert sarif["results"][1]["locations"] == []


# Repairs


@pytest.fixture
def repaired(script):
    """An examination with one finding of two that has a repair: edits in a line, and a line before it."""
    found = finding(script)
    before = "\n" * 11 + '    name = "weights"\n'
    edits = (Edit((12, 12), (12, 21), '"<w>"'), Edit((12, 1), (12, 1), "    # one\n"))
    return examination(found, NOWHERE, repairs=[Repair("fm05", script, 12, before, edits)])


def test_a_person_reads_the_diff(repaired, script, monkeypatch):
    monkeypatch.chdir(os.path.dirname(script))
    words = text.in_words(repaired)
    heading = "repair of fm05 at train.py:12, proven by the same runs of a copy:"
    assert f"{heading}\n--- a/train.py\n+++ b/train.py\n" in words
    assert '\n-    name = "weights"\n+    # one\n+    name = "<w>"' in words


def test_json_has_the_diff_and_the_edits_of_a_repair(repaired, script):
    first, second = machine_readable.as_json(repaired)["findings"]
    assert "repair" not in second
    assert list(first["repair"]) == ["file", "diff", "edits"]
    assert first["repair"]["file"] == script
    assert first["repair"]["diff"].endswith('+    name = "<w>"\n')
    place = {"startLine": 12, "startColumn": 12, "endLine": 12, "endColumn": 21}
    assert first["repair"]["edits"][0] == {**place, "text": '"<w>"'}


def test_sarif_has_a_fix_as_its_schema_asks(repaired, tmp_path):
    sarif = machine_readable.as_sarif(repaired, tmp_path)
    assert violations(sarif) == []
    first, second = sarif["runs"][0]["results"]
    assert "fixes" not in second
    (change,) = first["fixes"][0]["artifactChanges"]
    assert change["artifactLocation"] == {"uri": "train.py"}
    assert [each["insertedContent"]["text"] for each in change["replacements"]] == [
        '"<w>"',
        "    # one\n",
    ]


def test_a_card_shows_the_diff_as_text(repaired, script):
    card = html.card_of_program(repaired, program_input.script_listing(Path(script)), "")
    assert "+    name = &#34;&lt;w&gt;&#34;" in card
    assert "<w>" not in card
