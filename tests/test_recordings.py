"""Recorded runs: what is kept of them, when they are out of date, and what happens where one is missing."""

import dataclasses
import math
import re
import sys
from pathlib import Path

import pytest
import recordings
import replayed
from conftest import ROOT, changed
from recorded import run, updated
from strategy_clinic.base.errors import UserError
from strategy_clinic.examiner.recording import ProcessStacks, Role, ThreadStack
from strategy_clinic.examiner.runs import plan
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.examiner.runs.sandbox import Sandbox
from strategy_clinic.observer.events import (
    ExceptionRaised,
    Frame,
    ModelAnswered,
    Outcome,
    Sample,
    Started,
)

# No program runs, so none needs a view of the file system, which takes a process.
pytestmark = pytest.mark.usefixtures("quiet", "copied")

TESTS = Path(__file__).parent
TESTED = sorted(replayed.FOLDER.glob("test_*/*.xz"))


@pytest.fixture
def quiet(monkeypatch):
    """A sandbox that starts no process: its runs are events on the program's path."""

    def made(sandbox, role, devices, options=()):
        folder = str(sandbox.program.folder)
        frames = (Frame(f"{folder}/train.py", 1, "<module>"),)
        stacks = (ProcessStacks(1, "python", (ThreadStack(frames, frames),), True),)
        events = (Started(devices, folder), updated())
        recording = run(*events, role=role, devices=devices)
        return dataclasses.replace(recording, stacks=stacks, output=f"in {sandbox.place}")

    monkeypatch.setattr(Sandbox, "run", made)


@pytest.fixture
def program(tmp_path):
    return program_in(tmp_path / "one")


def program_in(folder):
    folder.mkdir()
    (folder / "train.py").write_text("print(1)\n")
    return ProgramSpec(("train.py",), folder, fork_server="none")


def recorded(program, path, *roles):
    with recordings.RecordingSandbox(program, path) as sandbox:
        for role in roles:
            sandbox.files.restore(sandbox.files.initial)
            sandbox.run(role, 2, ("--tell",))
    return path


def replay_of(program, path):
    sandbox = recordings.replay(path, program)
    sandbox.files.restore(sandbox.files.initial)
    return sandbox


def test_a_run_comes_back_with_the_paths_of_its_new_place(program, tmp_path):
    path = recorded(program, tmp_path / "runs.json.xz", Role.WATCHED)
    other = program_in(tmp_path / "elsewhere")
    with replay_of(other, path) as sandbox:
        back = sandbox.run(Role.WATCHED, 2, ("--tell",))
        assert back.output == f"in {sandbox.place}"
    assert (back.role, back.devices, back.outcome) == (Role.WATCHED, 2, Outcome.FINISHED)
    assert back.events == (Started(2, str(other.folder)), updated())
    frame = Frame(f"{other.folder}/train.py", 1, "<module>")
    assert back.stacks[0].threads[0].own == (frame,)


def test_runs_with_the_same_words_come_in_their_order_and_each_once(program, tmp_path):
    path = recorded(program, tmp_path / "runs.json.xz", Role.WATCHED, Role.REPEATED)
    with replay_of(program, path) as sandbox:
        assert sandbox.run(Role.REPEATED, 2, ("--tell",)).role is Role.REPEATED
        with pytest.raises(recordings.NotRecorded, match="initial repeated 2 --tell"):
            sandbox.run(Role.REPEATED, 2, ("--tell",))


@pytest.mark.parametrize(
    "role, devices, options, state",
    [
        (Role.COMPARED, 2, ("--tell",), "initial"),
        (Role.WATCHED, 1, ("--tell",), "initial"),
        (Role.WATCHED, 2, (), "initial"),
        (Role.WATCHED, 2, ("--tell",), "left-AFTER"),
    ],
)
def test_another_run_was_not_recorded(program, tmp_path, role, devices, options, state):
    path = recorded(program, tmp_path / "runs.json.xz", Role.WATCHED)
    with replay_of(program, path) as sandbox:
        sandbox.files.restore(sandbox.place / state)
        with pytest.raises(recordings.NotRecorded):
            sandbox.run(role, devices, options)


def test_the_environment_is_a_part_of_what_is_asked_for(program, tmp_path):
    path = recorded(program, tmp_path / "runs.json.xz", Role.WATCHED)
    with replay_of(program, path) as sandbox:
        sandbox.added = {"TF_ENABLE_ONEDNN_OPTS": "0"}
        with pytest.raises(recordings.NotRecorded):
            sandbox.run(Role.WATCHED, 2, ("--tell",))


def test_what_is_stopped_is_not_kept(program, tmp_path):
    path = tmp_path / "runs.json.xz"
    with pytest.raises(KeyboardInterrupt), recordings.RecordingSandbox(program, path):
        raise KeyboardInterrupt
    with recordings.RecordingSandbox(program, path) as sandbox:
        sandbox.stopped = True
    assert not path.exists()


def test_files_of_a_folder_are_packed_and_read_as_before(program, tmp_path):
    folder = tmp_path / "runs"
    paths = [
        recorded(program, folder / f"{name}.json.xz", Role.WATCHED) for name in ("a", "b", "c")
    ]
    before = [recordings.contents(path) for path in paths]
    recordings.pack(folder, ["a.json", "b.json"])
    assert sorted(path.name for path in tmp_path.glob("runs*")) == ["runs.tar.xz"]
    assert [recordings.contents(path) for path in paths[:2]] == before[:2]
    assert [recordings.stale(path, program) for path in paths] == [[], [], ["not recorded"]]
    with replay_of(program, paths[0]) as sandbox:
        assert sandbox.run(Role.WATCHED, 2, ("--tell",)).finished
    recorded(program, paths[2], Role.WATCHED)  # more is recorded, and one that is there is again
    recorded(program, paths[0], Role.REPEATED)
    recordings.pack(folder, ["a.json", "b.json", "c.json"])
    assert [recordings.stale(path, program) for path in paths] == [[], [], []]
    assert recordings.contents(paths[1]) == before[1] and b"repeated" in recordings.contents(
        paths[0]
    )


# What is out of date


def test_entries_of_samples_have_nine_digits_and_nothing_else_is_shorter():
    told = 'prints {"entries": [0.1859825700521469]}'
    sample = Sample(3.1658202009340752, (0.1859825700521469, -1.5, 1e-30, math.nan))
    answer, raised = ModelAnswered((), sample), ExceptionRaised((), "ValueError", told, ())
    plain = recordings.to_plain(run(answer, raised))
    back, other = recordings.from_plain(plain).events
    assert str(back.output.entries) == "(0.18598257, -1.5, 1e-30, nan)"
    assert back.output.norm == sample.norm and other == raised


@pytest.mark.parametrize("name", ["train.py", "configuration.json"])
def test_another_file_is_another_program(program, tmp_path, name):
    path = recorded(program, tmp_path / "runs.json.xz", Role.WATCHED)
    assert recordings.stale(path, program) == []
    (program.folder / name).write_text("print(2)\n")
    assert recordings.stale(path, program) == ["program"]
    with pytest.raises(UserError, match=r"runs.json.xz is out of date \(program\): record it"):
        recordings.replay(path, program)


@pytest.mark.parametrize("how", [{"arguments": ("train.py", "-v")}, {"keras": 2}, {"steps": 3}])
def test_another_way_to_run_it_is_another_program(program, tmp_path, how):
    path = recorded(program, tmp_path / "runs.json.xz", Role.WATCHED)
    assert recordings.stale(path, dataclasses.replace(program, **how)) == ["program"]


@pytest.mark.parametrize("name", ["hash_of_observer", "versions"])
def test_another_observer_or_version_makes_a_recording_stale(program, tmp_path, monkeypatch, name):
    path = recorded(program, tmp_path / "runs.json.xz", Role.WATCHED)
    monkeypatch.setattr(recordings, name, lambda: "another one")
    assert recordings.stale(path, program) == [name.removeprefix("hash_of_")]


def test_what_was_never_recorded_is_stale(program, tmp_path):
    assert recordings.stale(tmp_path / "none.json.xz", program) == ["not recorded"]


MODULE = '''"""What it does."""
from ..base import files  # for a reason


def double(number):
    """Doubles it."""
    return 2 * number
'''


@pytest.mark.parametrize(
    "old, new, same",
    [
        ("What it does", "Something else", True),
        ("# for a reason", "# for another", True),
        ('    """Doubles it."""\n', "", True),
        ("2 * number", "3 * number", False),
        ("double(number)", "double(number=1)", False),
    ],
)
def test_only_code_makes_another_observer(tmp_path, old, new, same):
    module = tmp_path / "module.py"
    module.write_text(MODULE)
    before = recordings.code_of(module)
    changed(module, old, new)
    assert (recordings.code_of(module) == before) is same


def test_the_observer_is_all_that_runs_in_a_program(tmp_path):
    for name, text in {
        "observer/__main__.py": "from .main import main\n",
        "observer/main.py": "from ..base.far import away\n",
        "base/far.py": "from . import further\n",
        "base/further.py": "",
        "base/another.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = recordings.modules_from(tmp_path / "observer")
    names = sorted(str(path.relative_to(tmp_path)) for path in found)
    assert names == ["base/far.py", "base/further.py", "observer/__main__.py", "observer/main.py"]


# In an examination


def test_a_missing_run_ends_the_examination(program, tmp_path):
    path = recorded(program, tmp_path / "runs.json.xz", Role.STOPPED)
    with (
        recordings.sandboxes(lambda spec: recordings.replay(path, spec)),
        pytest.raises(recordings.NotRecorded, match="initial watched 2"),
    ):
        plan.examine(program, [1, 2])


def test_an_examination_is_replayed_without_a_run(program, tmp_path, monkeypatch):
    path = tmp_path / "runs.json.xz"
    with recordings.sandboxes(lambda spec: recordings.RecordingSandbox(spec, path)):
        made = plan.examine(program, [1, 2])
    monkeypatch.setattr(Sandbox, "run", None)
    with recordings.sandboxes(lambda spec: recordings.replay(path, spec)):
        again = plan.examine(program, [1, 2])
    assert made.runs and [each.words for each in again.runs] == [each.words for each in made.runs]
    assert again.notes == made.notes


# The fewest tests that show that programs run as recorded


def test_the_fewest_files_have_all_kinds():
    kinds = {"a": {"1", "2"}, "b": {"1", "2", "3"}, "c": {"4"}, "d": {"3"}, "e": {"4", "2"}}
    assert replayed.covering(kinds, dict.fromkeys(kinds, 1)) == ["b", "c"]
    assert replayed.covering(kinds, dict.fromkeys(kinds, 1) | {"b": 4, "e": 2}) == ["a", "c", "d"]


def test_the_kinds_of_a_recording_are_those_of_its_runs(program, tmp_path):
    path = recorded(program, tmp_path / "runs.json.xz", Role.WATCHED, Role.REPEATED)
    runs = recordings.Recorded.read(path).runs
    assert replayed.kinds_in(runs) == {"watched", "repeated", "--tell", "finished"}


def test_those_that_are_run_have_every_kind():
    kinds = {path: replayed.kinds_in(recordings.Recorded.read(path).runs) for path in TESTED}
    chosen = set().union(*(kinds[path] for path in replayed.chosen()))
    assert chosen == set().union(*kinds.values()) and len(replayed.chosen()) <= 32


# The recordings of the tests


def test_recordings_are_those_of_the_observer_and_of_the_locked_versions():
    """Otherwise the programs run: `make recordings` records those that are out of date again."""
    lock = (ROOT / "requirements.lock").read_text()
    pins = [re.search(rf"(?m)^{name}==(\S+)", lock)[1] for name in recordings.PACKAGES]
    locked = ", ".join(f"{name} {pin}" for name, pin in zip(recordings.PACKAGES, pins))
    if sys.version_info[:2] == (3, 11):  # that of the recordings
        assert recordings.OBSERVER.read_text() == f"3.11 {recordings.found_hash()}\n"
    for path in TESTED:
        header = recordings.header_of(path)
        assert (header.observer, header.versions) == (recordings.hash_of_observer(), locked), path


def test_every_recording_has_its_test():
    texts = {path.stem: path.read_text() for path in TESTS.rglob("test_*.py")}
    for path in TESTED:
        name = re.match(r"test_\w+|", path.name)[0]
        assert f"def {name}" in texts[path.parent.name], path.name


def test_the_store_is_small():
    files = replayed.FOLDER.rglob("*.xz")
    assert sum(path.stat().st_size for path in files) < 22_000_000
