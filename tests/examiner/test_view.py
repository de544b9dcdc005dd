"""What a run changes outside of its folder is seen by the runs that follow it, and by nobody else. No TensorFlow."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import ways_to_write
from strategy_clinic.base.errors import UserError
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.report import text
from strategy_clinic.examiner.runs import plan, workspace
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.examiner.runs.sandbox import Sandbox
from strategy_clinic.observer import landlock
from strategy_clinic.observer.events import Outcome
from strategy_clinic.processes import view

pytestmark = pytest.mark.slow


@pytest.fixture
def permitted(tmp_path):
    """A system that permits a view, as Ubuntu 24.04 and most containers do not."""
    for name in ("view", "view/hidden", "view/hidden/shared"):
        (tmp_path / name).mkdir()
    hidden = tmp_path / "view" / "hidden"
    try:
        view.View(tmp_path / "view", hidden, hidden / "shared").end()
    except view.NoView as reason:
        pytest.skip(f"this system permits no view: {reason}")
    shutil.rmtree(tmp_path / "view", ignore_errors=True)


@pytest.fixture(params=["root or user", "user"])
def sees_a_view(request, monkeypatch):
    """Runs see a view, once as this user may have it, once without the privilege to mount."""
    if request.param == "user":
        setpriv = shutil.which("setpriv") or pytest.skip("no setpriv, to give a privilege up")
        plain = subprocess.Popen
        less = [setpriv, "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]

        def start(command, **more):
            return plain([*less * (os.getuid() == 0), *command], **more)

        monkeypatch.setattr(view.subprocess, "Popen", start)
    request.getfixturevalue("permitted")


@pytest.fixture
def outside(tmp_path):
    """A folder for each way to write, outside of the program's folder."""
    for way in ways_to_write.WAYS:
        folder = tmp_path / "outside" / way
        (folder / "tree").mkdir(parents=True)
        (folder / "old.txt").write_text("old text")
        (folder / "tree" / "leaf.txt").write_text("a leaf")
        shutil.copy(array_file(tmp_path), folder / "old.npy")
    return tmp_path / "outside"


def array_file(folder: Path) -> Path:
    import numpy

    numpy.save(folder / "array.npy", numpy.zeros(3))
    return folder / "array.npy"


def listing(root: Path) -> dict[str, tuple[object, ...]]:
    """Returns permissions, time and a hash of all that is in a folder."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(root))] = (status.st_mode, status.st_mtime_ns, content)
    return found


def sandbox_of(tmp_path, text):
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "train.py").write_text(text)
    return Sandbox(ProgramSpec(("train.py",), folder))


def run(sandbox, stored, *arguments):
    sandbox.program = ProgramSpec(("train.py", *arguments), sandbox.program.folder)
    sandbox.files.restore(stored)
    recording = sandbox.run(Role.WATCHED, 1)
    assert recording.outcome is Outcome.FINISHED, recording.output
    assert "FAILED" not in recording.output, recording.output
    return json.loads(recording.output.splitlines()[-1])


def run_in_chain(sandbox):
    """What a run sees that has written, as one that goes on from there does; and what one sees that begins anew."""
    found = run(sandbox, sandbox.files.initial, "write")
    sandbox.files.store(sandbox.place / "left")
    assert run(sandbox, sandbox.place / "left") == found
    return found, run(sandbox, sandbox.files.initial)


def test_no_way_to_write_changes_anything(tmp_path, outside, sees_a_view):
    """A second run goes on from what the first has left; a third begins with what the reader has."""
    before = listing(outside)
    with sandbox_of(tmp_path, ways_to_write.program(str(outside))) as sandbox:
        assert isinstance(sandbox.files, workspace.ViewedFolder), sandbox.files.why
        found, anew = run_in_chain(sandbox)
    assert listing(outside) == before
    # The program cannot tell these by names and contents; all others have changed something that it then saw.
    unseen = {"changes_permissions", "changes_times", "makes_temporary_files"}
    assert {way for way in ways_to_write.WAYS if part(found, way) == part(anew, way)} == unseen
    assert set(anew) == {name for name in before if "tmp" not in name}


def test_a_run_in_a_view_has_the_file_system_that_its_reader_has(tmp_path, sees_a_view):
    """Its own folder by its path, links that lead out, what is two folders up, and devices; but nothing of this process."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.csv").write_text("1,2")
    text = f"""
import json, multiprocessing, os
os.symlink("../data", "link")
multiprocessing.Lock()
open("/dev/null", "w").write("x")
print(json.dumps({{
    "here": os.getcwd(), "file": os.path.abspath(__file__),
    "read": [open(path).read() for path in ("../data/x.csv", "link/x.csv", {str(tmp_path / "data/x.csv")!r})],
    "hidden": os.listdir({str(tmp_path)!r}), "user": os.getuid(),
}}))
"""
    with sandbox_of(tmp_path, text) as sandbox:
        found = run(sandbox, sandbox.files.initial)
    here = tmp_path / "program"
    assert (found["here"], found["file"]) == (str(here), str(here / "train.py"))
    assert found["read"] == ["1,2"] * 3 and found["user"] == os.getuid()
    assert sorted(os.listdir(here)) == ["train.py"]


def test_two_processes_share_a_view(tmp_path, sees_a_view):
    """As the workers of a cluster do, which wait for each other's files."""
    with sandbox_of(
        tmp_path, "import os, sys; open(sys.argv[1], 'x'); print(os.listdir())"
    ) as sandbox:
        sandbox.files.restore(sandbox.files.initial)
        for name in ("one", "two"):
            sandbox.program = ProgramSpec(("train.py", name), sandbox.program.folder)
            output = sandbox.run(Role.TASK, 1).output
    assert "one" in output and "two" in output


def test_shared_memory_is_as_usual_and_what_is_left_in_it_is_seen_again(tmp_path, sees_a_view):
    text = f"""
import json, multiprocessing, os
from multiprocessing import shared_memory
multiprocessing.Lock()
memory = shared_memory.SharedMemory(create=True, size=9)
memory.close(); memory.unlink()
place = "/dev/shm/{tmp_path.name}"
print(json.dumps(os.path.isdir(place)))
os.makedirs(place, exist_ok=True)
"""
    with sandbox_of(tmp_path, text) as sandbox:
        found = [run(sandbox, sandbox.files.initial)]
        sandbox.files.store(sandbox.place / "left")
        found.append(run(sandbox, sandbox.place / "left"))
    assert found == [False, True] and not os.path.exists(f"/dev/shm/{tmp_path.name}")


def test_nothing_is_left_of_a_view(tmp_path, sees_a_view):
    with sandbox_of(tmp_path, "open('new', 'w')") as sandbox:
        place, holder = sandbox.place, sandbox.files.view.holder
    assert holder.returncode == 0 and not place.exists()


def test_a_program_that_fills_a_view_by_renaming_a_folder_of_its_reader(tmp_path, sees_a_view):
    """A user's overlay cannot rename such a folder; `shutil.move`, which copies then, can."""
    text = "import json, os, shutil; shutil.move('old', 'new'); print(json.dumps(sorted(os.listdir())))"
    with sandbox_of(tmp_path, text) as sandbox:
        (sandbox.folder / "old").mkdir()
        assert run(sandbox, sandbox.files.initial) == ["new", "train.py"]


@pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")
def test_where_there_is_no_view_the_same_is_redirected(tmp_path, outside, copied):
    """But for what other programs do, which may write into the folder only: they fail, and the report says so."""
    before = listing(outside)
    others = {"asks_a_shell", "starts_a_program"}
    with sandbox_of(tmp_path, ways_to_write.program(str(outside), others)) as sandbox:
        assert isinstance(sandbox.files, workspace.CopiedFolder)
        found, anew = run_in_chain(sandbox)
    assert listing(outside) == before
    unseen = {"changes_permissions", "changes_times", "makes_temporary_files"}
    assert {
        way for way in ways_to_write.WAYS if part(found, way) == part(anew, way)
    } == unseen | others


MOUNTING = """
import os, subprocess, sys
from pathlib import Path
from strategy_clinic.examiner.recording import Role
from strategy_clinic.examiner.runs.program_spec import ProgramSpec
from strategy_clinic.examiner.runs.sandbox import Sandbox

place = Path(sys.argv[1])
places = [place / "data", Path("/run") / place.name]
for each in places:
    each.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", each], check=True)
    (each / "old").write_text("old")
with Sandbox(ProgramSpec(("train.py", *map(str, places)), place)) as sandbox:
    sandbox.files.restore(sandbox.files.initial)
    print(sandbox.files.why, sandbox.run(Role.WATCHED, 1).output)
for each in places:
    print(sorted(os.listdir(each)), (each / "old").read_text())
    subprocess.run(["umount", each], check=True)
    each.rmdir()
"""
WRITING = """
import os, sys
for place in sys.argv[1:]:
    try:
        open(f"{place}/old", "w").write("new")
        print("wrote", os.listdir(place), open(f"{place}/old").read())
    except OSError as error:
        print("refused", error.strerror)
"""


@pytest.fixture
def quiet_folder():
    """A folder beside few others: in a view, all that is beside a mount, and beside each folder above it, gets its own."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


def test_no_mount_in_a_folder_or_among_the_services_is_changed(quiet_folder, permitted):
    """In a mount namespace of the test's own, which is gone with it."""
    unshare = shutil.which("unshare") or pytest.skip("no unshare, to mount something")
    if os.getuid():
        pytest.skip("only root may mount something")
    (quiet_folder / "train.py").write_text(WRITING)
    command = [unshare, "--mount", sys.executable, "-c", MOUNTING, str(quiet_folder)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.splitlines() == [
        " wrote ['old'] new",
        "refused Read-only file system",
        "",
        "['old'] old",
        "['old'] old",
    ]


REFUSED = """
import posix, sys
posix.mkdir(sys.argv[1])
print("went on")
"""


def test_what_cannot_be_kept_apart_ends_the_examination(tmp_path, copied):
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "train.py").write_text(REFUSED)
    made = tmp_path / "made"
    program = ProgramSpec(("train.py", str(made)), tmp_path / "program")
    with pytest.raises(UserError, match=rf"change '{made}' \(line 3\).*\(not permitted\)"):
        plan.examine(program)
    assert not made.exists()


def test_a_place_that_can_only_be_read_ends_the_examination(tmp_path, permitted):
    """`/run` is as it is in every view, since its sockets could not be reached otherwise."""
    if not os.access("/run", os.W_OK):
        pytest.skip("this user may not write there anyway")
    (tmp_path / "train.py").write_text("open('/run/clinic-test', 'w')")
    with pytest.raises(UserError, match="can only be read .*, and ended with OSError.*/run"):
        plan.examine(ProgramSpec(("train.py",), tmp_path))
    assert not os.path.exists("/run/clinic-test")


@pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")
def test_what_other_programs_were_not_allowed_is_said(tmp_path, copied):
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "train.py").write_text(
        "import os, sys; os.system(f'touch {sys.argv[1]}')"
    )
    examination = plan.examine(
        ProgramSpec(("train.py", str(tmp_path / "new")), tmp_path / "program")
    )
    assert not (tmp_path / "new").exists()
    assert any("could write only into the program's folder" in each for each in examination.unseen)
    assert text.exit_status(examination) == 4


def part(found, way):
    return {name: value for name, value in found.items() if name.startswith(f"{way}/")}
