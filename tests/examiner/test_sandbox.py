"""The copied folder that a program runs in: what is in it, and that every run begins with the same. No TensorFlow."""

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from strategy_clinic.base.errors import UserError
from strategy_clinic.examiner import cells
from strategy_clinic.examiner.findings import Location
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.runs import folder
from strategy_clinic.examiner.runs.folder import WorkingCopy, signatures_in
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.examiner.runs.sandbox import Sandbox
from strategy_clinic.observer.events import Frame, Outcome, Started, StrategyMade
from strategy_clinic.processes import python_process
from test_mistakes import python

ENDED = SimpleNamespace(pid=-1, returncode=0, poll=lambda: 0)  # a process


@pytest.fixture(params=["view", "copy"])
def either(request):
    """Runs have a view, or a copy where there is none."""
    if request.param == "copy":
        request.getfixturevalue("copied")


@pytest.fixture
def program(tmp_path):
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)\n")
    return ProgramSpec(("train.py",), folder)


def names_in(sandbox):
    sandbox.files.restore(sandbox.files.initial)
    return sorted(os.listdir(sandbox.folder))


@pytest.mark.parametrize("name", ["venv", "any name"])
def test_a_virtual_environment_is_not_copied(program, name, copied):
    (program.folder / name).mkdir()
    (program.folder / name / "large").write_bytes(b"x" * 100)
    (program.folder / name / "pyvenv.cfg").touch()
    with Sandbox(program) as sandbox:
        assert names_in(sandbox) == ["train.py"]


def test_a_program_in_the_folder_for_temporary_files_is_copied_without_its_copies(
    program, monkeypatch, copied
):
    monkeypatch.setattr(tempfile, "tempdir", str(program.folder))
    with Sandbox(program) as first, Sandbox(program) as second:
        assert first.place.parent == second.place.parent == program.folder
        assert names_in(first) == names_in(second) == ["train.py"]
    (program.folder / "data").mkdir()
    (program.folder / "data" / "clinic-1").touch()
    assert folder.not_copied(str(program.folder / "data"), ["clinic-1"]) == set()


def test_a_folder_that_only_has_the_name_of_an_environment_is_copied(program, copied):
    (program.folder / "venv").mkdir()
    with Sandbox(program) as sandbox:
        assert names_in(sandbox) == ["train.py", "venv"]


def test_a_folder_is_copied_with_what_it_reaches(program, copied):
    (program.folder.parent / "data").write_text("numbers")
    (program.folder / "link").symlink_to("../data")
    os.mkfifo(program.folder / "pipe")
    with Sandbox(program) as sandbox:
        assert names_in(sandbox) == ["link", "train.py"]
        assert (sandbox.folder / "link").read_text() == "numbers"
        assert (sandbox.folder / "../data").read_text() == "numbers"


@pytest.mark.slow
def test_what_is_large_in_a_folder_is_linked_and_not_changed(program, copied, monkeypatch):
    """A folder of data, or of a tracker's runs, would be copied for minutes; what is written there is kept apart."""
    monkeypatch.setattr(folder, "LARGEST_FILE", 1000)
    monkeypatch.setattr(folder, "MOST_FILES_OF_A_PART", 2)
    (program.folder / "weights.h5").write_text("old" * 1000)
    (program.folder / "few").mkdir()
    (program.folder / "many").mkdir()
    for name in ("few/1", "few/2", "many/1", "many/2", "many/3"):
        (program.folder / name).write_text("old")
    (program.folder / "train.py").write_text(
        "for name in ('weights.h5', 'many/1', 'few/1'):\n"
        "    open(name, 'w').write('new')\n"
        "    print(open(name).read(), end=' ')\n"
    )
    with Sandbox(program) as sandbox:
        assert names_in(sandbox) == ["few", "many", "train.py", "weights.h5"]
        links = [path.name for path in sandbox.folder.iterdir() if path.is_symlink()]
        recording = sandbox.run(Role.WATCHED, 1)
    assert (sorted(links), recording.output.strip()) == (["many", "weights.h5"], "new new new")
    assert (program.folder / "weights.h5").read_text() == "old" * 1000
    assert (program.folder / "many" / "1").read_text() == "old"


@pytest.mark.slow
def test_a_copy_lies_as_deep_as_the_folder(tmp_path, copied):
    """So that two folders up is what was there; and a link that leads out is found."""
    place = tmp_path / "one" / "two"
    place.mkdir(parents=True)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.csv").write_text("1,2")
    (place / "link").symlink_to("../../data")
    (place / "train.py").write_text(
        "print(*(open(f'{to}/x.csv').read() for to in ('../../data', 'link')))"
    )
    with Sandbox(ProgramSpec(("train.py",), place)) as sandbox:
        sandbox.files.restore(sandbox.files.initial)
        assert sandbox.run(Role.WATCHED, 1).output.strip() == "1,2 1,2"


def test_a_folder_that_cannot_be_copied(program, monkeypatch, copied):
    def fail(*_, **__):
        raise shutil.Error([("train.py", "copy", "no permission")])

    monkeypatch.setattr(shutil, "copytree", fail)
    with pytest.raises(UserError, match="cannot be copied, .*: 'train.py' in it: no permission"):
        Sandbox(program)


def test_a_file_that_goes_while_the_folder_is_copied_is_not_missed(program, monkeypatch, copied):
    """As the journal of a database that another process has open."""
    assert folder.not_copied(str(program.folder), ["gone", "train.py"]) == {"gone"}
    (program.folder / "journal").touch()
    plain = shutil.copy2

    def copy(source, *targets, **options):
        if source.endswith("journal"):
            os.unlink(source)
        return plain(source, *targets, **options)

    monkeypatch.setattr(shutil, "copy2", copy)
    with Sandbox(program) as sandbox:
        assert names_in(sandbox) == ["train.py"]


@pytest.mark.slow
@pytest.mark.parametrize("socket", [None, "/socket"])
def test_a_program_finds_what_its_reader_finds(program, monkeypatch, socket):
    monkeypatch.setenv("PYTHONPATH", "/theirs")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("TF_CONFIG", "{}")
    started = []
    monkeypatch.setattr(python_process, "start", lambda *given: started.append(given) or ENDED)
    with Sandbox(ProgramSpec(("train.py",), program.folder, fork_server=socket)) as sandbox:
        sandbox.start(1, ())
        observer = [str(sandbox.packages)] if socket else []  # which the program's folder replaces
    ((_, environment, _, _, server),) = started
    assert server == socket
    assert environment["PYTHONPATH"].split(os.pathsep) == [*observer, "/theirs"]
    assert environment["CUDA_VISIBLE_DEVICES"] == "-1"
    assert "TF_CONFIG" not in environment


def test_nothing_but_the_package_is_beside_the_observer(program, either):
    with Sandbox(program) as sandbox:
        assert os.listdir(sandbox.packages) == ["strategy_clinic"]
        assert os.path.isfile(sandbox.command(sandbox.place / "events", 1, (), False)[1])


@pytest.mark.slow
def test_an_edited_file_is_another_for_the_run_only(program, either):
    edited = replace(program, edited=(("train.py", "print(2)\n"),))
    with Sandbox(edited) as sandbox:
        sandbox.files.restore(sandbox.files.initial)
        recording = sandbox.run(Role.WATCHED, 1)
    assert (recording.outcome, recording.output.strip()) == (Outcome.FINISHED, "2")
    assert (program.folder / "train.py").read_text() == "print(1)\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "given, server, is_on",
    [(None, None, True), ("1", None, True), ("0", None, False), ("1", "a socket", False)],
)
def test_what_a_variable_can_turn_off(program, monkeypatch, given, server, is_on):
    """A forked process has imported TensorFlow already."""
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    if given:
        monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", given)
    with Sandbox(replace(program, fork_server=server)) as sandbox:
        assert sandbox.has("TF_ENABLE_ONEDNN_OPTS") is is_on
        sandbox.added = {"TF_ENABLE_ONEDNN_OPTS": "0"}
        assert not sandbox.has("TF_ENABLE_ONEDNN_OPTS")


@pytest.mark.slow
def test_an_interpreter_that_the_observer_does_not_suit(program, tmp_path, either):
    old = python(tmp_path / "python", "echo too old")
    with Sandbox(ProgramSpec(("train.py",), program.folder, python=old)) as sandbox:
        sandbox.files.restore(sandbox.files.initial)
        with pytest.raises(UserError, match="cannot start in .*: too old"):
            sandbox.run(Role.WATCHED, 1)


# What is observed


def observed_at(path, program, listing=None):
    """The recording of a run in which the observer has written one event, at a line of a file in the copy."""
    with Sandbox(program.with_listing(listing) if listing else program) as sandbox:
        event = StrategyMade((Frame(str(sandbox.folder / path), 2, "main"),), "Mirrored", 2)
        events = program.folder.parent / "written"
        events.write_text(f"{Started(2).to_json()}\n{event.to_json()}\n")
        observer = python(program.folder.parent / "python", f'cp {events} "$3"')
        sandbox.program = replace(sandbox.program, python=observer)
        sandbox.files.restore(sandbox.files.initial)
        recording = sandbox.run(Role.WATCHED, 2)
        (made,) = recording.of(StrategyMade)
        text = Path(made.location[0].path).read_text()
        return recording, sandbox.locate(Location(made.location)), text


@pytest.mark.slow
def test_events_have_the_paths_of_the_reader(program, either):
    recording, location, _ = observed_at("train.py", program)
    assert location.file == str(program.folder / "train.py")
    assert (recording.outcome, recording.status) == (
        Outcome.KILLED,
        0,
    )  # no event says how it ended


@pytest.mark.slow
def test_a_run_is_logged_with_its_command_and_its_end(program, caplog):
    with caplog.at_level("DEBUG", "strategy_clinic"):
        observed_at("train.py", program)
    began, ended = [record.getMessage() for record in caplog.records if "runs" in record.name]
    assert "process 1 in " in began and began.endswith("-- train.py")
    assert ended == "watched run on 2 devices: status 0, 2 events"


@pytest.mark.slow
def test_a_line_of_a_cell_is_located_in_its_cell(program, either):
    listing = cells.listing_of("notes.ipynb", [cells.Cell(3, "x = 1")], "/notes.ipynb")
    _, location, text = observed_at(listing.file_name, program, listing)
    assert text == listing.text
    assert (location.file, location.cell, location.line) == ("/notes.ipynb", 3, 1)
    assert location.code == "x = 1"


# What is restored


@pytest.fixture
def stored(tmp_path):
    folder = tmp_path / "stored"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "numbers").write_text("1 2 3")
    (folder / "train.py").write_text("print(1)\n")
    (folder / "link").symlink_to("train.py")
    (folder / "data").chmod(0o555)
    yield folder
    (folder / "data").chmod(0o755)


def contents(root):
    """Kind, permissions and text of all that is in a folder."""
    found = {}
    for name in signatures_in(root):
        path = root / name
        mode = path.lstat().st_mode
        found[name] = (mode, os.readlink(path)) if path.is_symlink() else (mode,)
        found[name] += (path.read_text(),) if path.is_file() else ()
    return found


def append(root):
    (root / "train.py").write_text("print(1)\nprint(2)\n")


def change_with_its_time(root):
    """To a text of the same length, as if nothing had been written."""
    path = root / "data" / "numbers"
    before = path.stat()
    path.write_text("4 5 6")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def remove_folder(root):
    (root / "data").chmod(0o755)
    shutil.rmtree(root / "data")


def put_a_file_for_a_folder(root):
    remove_folder(root)
    (root / "data").write_text("a file")


def put_a_folder_for_a_file(root):
    (root / "train.py").unlink()
    (root / "train.py" / "deep").mkdir(parents=True)


def move_folder(root):
    (root / "data").chmod(0o755)
    (root / "data").rename(root / "moved")


def add(root):
    (root / "new" / "deep").mkdir(parents=True)
    (root / "new" / "deep" / "file").touch()
    (root / "new" / "deep").chmod(0o000)


def point_elsewhere(root):
    (root / "link").unlink()
    (root / "link").symlink_to("data")


def remove_all(root):
    remove_folder(root)
    shutil.rmtree(root)


@pytest.mark.parametrize(
    "change",
    [
        append,
        change_with_its_time,
        remove_folder,
        put_a_file_for_a_folder,
        put_a_folder_for_a_file,
        move_folder,
        add,
        point_elsewhere,
        remove_all,
    ],
    ids=lambda change: change.__name__,
)
def test_whatever_a_run_has_changed_is_restored(stored, tmp_path, change):
    copy = WorkingCopy(tmp_path / "copy")
    copy.restore(stored)
    assert contents(copy.root) == contents(stored)
    change(copy.root)
    assert not copy.root.exists() or contents(copy.root) != contents(stored)
    copy.restore(stored)
    assert contents(copy.root) == contents(stored)


def test_what_no_run_has_changed_is_not_copied_again(stored, tmp_path):
    copy = WorkingCopy(tmp_path / "copy")
    copy.restore(stored)
    before = (copy.root / "data" / "numbers").stat()
    append(copy.root)
    copy.restore(stored)
    after = (copy.root / "data" / "numbers").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_run_goes_on_in_what_another_has_left(stored, tmp_path):
    copy = WorkingCopy(tmp_path / "copy")
    copy.restore(stored)
    add(copy.root)
    (copy.root / "new" / "deep").chmod(0o755)
    left = contents(copy.root)
    copy.store(tmp_path / "left")
    append(copy.root)
    copy.restore(tmp_path / "left")
    assert contents(copy.root) == left
    copy.restore(stored)
    assert contents(copy.root) == contents(stored)


@pytest.mark.slow
def test_activations_are_counted_in_runs_that_are_reported(program, monkeypatch):
    given = {role: [] for role in Role}

    def start(self, devices, options, *others):
        given[role].extend(options)
        raise ProcessLookupError("no process is needed to see what it is given")

    monkeypatch.setattr(Sandbox, "start", start)
    with Sandbox(program) as sandbox:
        sandbox.files.restore(sandbox.files.initial)
        for role in Role:
            with pytest.raises(ProcessLookupError):
                sandbox.run(role, 1)
    unreported = {Role.REPEATED, Role.CHANGED, Role.STOPPED, Role.AGAIN}
    assert given == {role: ["--uncounted"] * (role in unreported) for role in Role}
