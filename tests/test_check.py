"""What `clinic check` says while it runs, the report of a check that is stopped, and a quick one. Nothing is run."""

import time
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from conftest import ROOT
from strategy_clinic import Setup, cli
from strategy_clinic.modes import registry
from strategy_clinic.programs.run import Run
from strategy_clinic.programs.verdicts import classify
from strategy_clinic.records import check, compare, measure, progress, store, version_records
from strategy_clinic.rendering.mode_notebooks import mode_notebooks
from strategy_clinic.setups import runtime
from strategy_clinic.triage import known_errors

pytestmark = pytest.mark.skipif(runtime.kind() != "cpu", reason="the committed records are a CPU's")
SETUPS = {"fm05": 90, "fm37": 15, "fm08": 1}


# How far it is


@pytest.fixture
def far(tmp_path):
    return progress.Progress(SETUPS, 1, tmp_path)


def test_a_mode_is_as_far_as_its_runs_have_said(far):
    assert [far.done(mode) for mode in SETUPS] == [0, 0, 0] and far.sentence() == ""
    far.file("fm05").write_bytes(b"." * 30)
    assert far.sentence().startswith("fm05: 30 of 90 setups; about ")
    far.file("fm05").write_bytes(b"." * 95)  # some ran twice, one by one
    assert far.done("fm05") == 90
    far.ended.add("fm05")
    far.file("fm08").write_bytes(b".")
    assert far.sentence() == "", "fm08 has no setup but its own"


def test_what_is_left_follows_the_pace(far, monkeypatch):
    whole = sum(progress.PAGE + progress.SETUP * count for count in SETUPS.values())
    assert far.seconds_left() == pytest.approx(whole)
    far.file("fm05").write_bytes(b"." * 44)
    done = progress.PAGE + progress.SETUP * 44
    monkeypatch.setattr(time, "monotonic", lambda: far.began + 300)
    assert far.seconds_left() == pytest.approx((whole - done) * 300 / done)
    assert far.sentence().endswith(f"; {progress.in_words(far.seconds_left())} left")


@pytest.mark.parametrize(
    "seconds, words",
    [(0, "10 seconds"), (44, "40 seconds"), (89, "90 seconds"), (91, "2 minutes")]
    + [(3000, "50 minutes")],
)
def test_a_time_is_as_exact_as_it_can_be(seconds, words):
    assert progress.in_words(seconds) == f"about {words}"


DOCUMENT = "book/how_to/check_in_ci.md"
ROWS = [("one mode, such as fm37", ["fm37"], False), ("fm05", ["fm05"], False)]
ROWS += [("all modes", ["all"], False), ("all modes, `--quick`", ["all"], True)]


@pytest.mark.parametrize("row, modes, quick", ROWS)
def test_the_documented_minutes_are_those_that_are_said(row, modes, quick, capsys):
    chosen = mode_notebooks(modes)
    how = measure.measure_own if quick else measure.measure_grid
    setups = measure.counts_of_setups(chosen, 3, how)
    said = progress.expected(setups, 1, 2, 0 if quick else len(chosen))
    time, unit = said.split("about ")[1].split()[:2]
    minutes = round(int(time) / (1 if unit == "minutes" else 60))
    assert f"| {row} | {sum(setups.values())} | {minutes} |" in (ROOT / DOCUMENT).read_text()


def test_it_is_said_again_and_again_until_it_is_over():
    said = []
    with progress.told({"fm05": 90}, 1, said.append, pause=0.01) as far:
        far.file("fm05").write_bytes(b"." * 3)
        while len(said) < 2:
            time.sleep(0.01)
    count = len(said)
    time.sleep(0.05)
    assert len(said) == count and said[0].startswith("fm05: 3 of 90 setups; about ")
    assert not far.folder.exists()


class FakeSession:
    mode = registry.mode_by_id("fm37")

    def both(self):
        return {}

    def run(self, texts, setups):
        (setup,) = setups
        return [classify(subject, setup, Run("1")) for subject in ("broken", "fixed")]


def test_a_run_notes_each_setup_that_it_has_run(tmp_path, capsys):
    wanted = [Setup("mirrored", count).as_dict() for count in (1, 2, 4)]
    measure.report_grid(FakeSession(), wanted, str(tmp_path / "ran"))
    assert (tmp_path / "ran").read_bytes() == b"..."
    assert "under 3 setups" in capsys.readouterr().out


# What it reports


@pytest.fixture
def as_recorded(monkeypatch):
    """Every mode comes out as the record of this machine's versions says; nothing is run. Returns what may be changed of it."""
    record = store.read_record("cpu-keras3")
    told = SimpleNamespace(page="as stored", stop="", asked=[])

    def measured(wanted, keras, ran, own):
        told.asked.append((wanted.mode.id, own))
        if wanted.mode.id == told.stop:
            raise KeyboardInterrupt
        found = record.of_mode(wanted.mode.id)
        here = store.own_setup(wanted.notebook, keras)
        kept = [each for setup, each in found.items() if not own or setup == here]
        return store.Measured(kept, told.page)

    grid = lambda *given: measured(*given, own=False)  # noqa: E731
    monkeypatch.setattr(measure, "measure_grid", grid)
    monkeypatch.setattr(compare, "measure_grid", grid)
    monkeypatch.setattr(compare, "measure_own", lambda *given: measured(*given, own=True))
    for module in (compare, check):
        monkeypatch.setattr(module, "nearest", lambda keras: record)
    monkeypatch.setattr(check, "nbval", lambda paths: told.asked.append("nbval") or [])
    return told


def run(folder, *words) -> int:
    return cli.main(["check", *words, "--junit", str(folder / "report.xml")])


def cases(folder) -> dict[str, list]:
    suites = ElementTree.parse(folder / "report.xml").getroot()
    return {suite.get("name"): list(suite) for suite in suites}


def test_it_says_first_what_is_known_of_the_versions_and_how_much_there_is(
    as_recorded, tmp_path, monkeypatch, capsys
):
    versions = {"keras": "3.8.0"}
    monkeypatch.setattr(known_errors, "version_of", versions.get)
    assert run(tmp_path, "fm05", "fm37") == 0
    said = capsys.readouterr().out.splitlines()
    known = [line for line in said if line.startswith("known error of Keras 3.8.0: ")]
    assert known == said[: len(known)] and "adds up the state of metrics" in known[0]
    first, *lines = said[len(known) :]
    assert first == "2 modes under 105 setups: about 4 minutes on two cores"
    assert lines[-1] == "every output and every verdict is as stored"
    assert set(cases(tmp_path)) == {"verdicts-keras3"} and as_recorded.asked[-1] == "nbval"


def test_a_check_that_is_stopped_leaves_what_was_done_and_says_that_it_is_a_part(
    as_recorded, tmp_path, capsys
):
    as_recorded.stop = "fm37"
    assert run(tmp_path, "fm01", "fm37") == 130
    assert "[1/2] fm01: 15 setups (raises 13, unavailable 2); about " in capsys.readouterr().out
    found = cases(tmp_path)
    assert {case.get("classname") for case in found["verdicts-keras3"]} == {"fm01"}
    (stopped,) = found["check"]
    assert stopped.find("error").get("message") == check.STOPPED


def test_a_report_is_there_before_the_first_mode(as_recorded, tmp_path):
    as_recorded.stop = "fm01"
    assert run(tmp_path, "fm01") == 130 and set(cases(tmp_path)) == {"check"}


def test_a_quick_check_runs_each_page_once_and_misses_no_other_setup(as_recorded, tmp_path, capsys):
    assert run(tmp_path, "fm05", "fm37", "--quick") == 0
    assert as_recorded.asked == [("fm05", True), ("fm37", True)]
    assert "2 modes under 2 setups: about " in capsys.readouterr().out
    names = [case.get("name") for case in cases(tmp_path)["verdicts-keras3"]]
    assert names.count("stored outputs") == 2 and len(names) < 20


def test_a_quick_check_finds_a_page_that_shows_something_else(as_recorded, tmp_path, capsys):
    as_recorded.page = "differs"
    assert run(tmp_path, "fm37", "--quick") == 1
    assert "news: fm37: its notebook shows something else than" in capsys.readouterr().out
    assert run(tmp_path, "fm37") == 0, "there nbval compares"


def test_a_page_that_is_known_to_differ_on_another_version_is_no_news():
    verdict = version_records.VersionVerdict("wrong", "works", "executed", "", "differs")
    stored = version_records.VersionRecord({}, "", verdicts={("fm37", 3): verdict})
    differs = store.Measured([], "differs")
    mode, other = map(registry.mode_by_id, ("fm37", "fm05"))
    assert compare.of_page(stored, mode, differs).problem == ""
    assert compare.of_page(stored, other, differs).problem != ""
    assert compare.of_page(None, mode, differs).problem != ""


@pytest.mark.parametrize("given", [["--quick"], []])
def test_another_version_is_checked_in_own_setups(as_recorded, tmp_path, monkeypatch, given):
    lane = version_records.of_plain_machine()
    for module in (compare, check):
        monkeypatch.setattr(module, "nearest", lambda keras: lane)
    assert run(tmp_path, "fm05", *given) == 0
    assert as_recorded.asked[0] == ("fm05", True)
