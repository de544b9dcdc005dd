"""Programs that write outside of their folder: nothing there changes, and they see what they have written."""

import hashlib
import json
import os
import subprocess
import sys
import textwrap

import pytest
from strategy_clinic.base import files
from strategy_clinic.examiner.reading import from_json
from strategy_clinic.observer import events, landlock, stacks

OBSERVER = files.PACKAGE / "observer"
WITHOUT_LANDLOCK = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from strategy_clinic.observer import landlock, main
landlock.version = lambda: 0
main.main()
"""
# What each program begins with: `here` is a folder outside, in which are old.txt, folder/inner.txt, link.txt and list.db.
BEGINNING = """
import os, pathlib, sys
here = sys.argv[1]
def path(*names): return os.path.join(here, *names)
def read(*names):
    with open(path(*names)) as file: return file.read()
def write(text, *names, mode="w"):
    with open(path(*names), mode) as file: file.write(text)
"""
# Each way to write outside, with what the program sees of it afterwards.
WAYS = {
    "a new file": "write('new', 'new.txt'); assert read('new.txt') == 'new'",
    "an old file": "write('new', 'old.txt'); assert read('old.txt') == 'new'",
    "to its end": "write('new', 'old.txt', mode='a'); assert read('old.txt') == 'oldnew'",
    "in its middle": """
        with open(path("old.txt"), "r+") as file:
            file.seek(1); file.write("X")
        assert read("old.txt") == "oXd"
        """,
    "only if it is new": """
        try: write("new", "old.txt", mode="x")
        except FileExistsError as error: assert error.filename == path("old.txt")
        else: raise AssertionError
        assert read("old.txt") == "old"
        write("new", "new.txt", mode="x"); assert read("new.txt") == "new"
        """,
    "by its name": """
        with open(path("new.txt"), "w") as file: assert file.name == path("new.txt")
        with open(path("new.txt")) as file: assert file.name == path("new.txt")
        """,
    "by bytes": """
        with open(os.fsencode(path("new.txt")), "wb") as file: file.write(b"new")
        assert sorted(os.listdir(os.fsencode(here))) == [
            b"folder", b"link.txt", b"list.db", b"new.txt", b"old.txt"]
        """,
    "os.open": """
        file = os.open(path("old.txt"), os.O_WRONLY | os.O_TRUNC); os.write(file, b"new"); os.close(file)
        assert read("old.txt") == "new"
        """,
    "os.open in a folder": """
        folder = os.open(here, os.O_RDONLY)
        file = os.open("old.txt", os.O_RDWR, dir_fd=folder); os.write(file, b"N"); os.close(file)
        assert read("old.txt") == "Nld"
        os.unlink("old.txt", dir_fd=folder); os.mkdir("made", dir_fd=folder)
        assert sorted(os.listdir(folder)) == ["folder", "link.txt", "list.db", "made"]
        """,
    "by a link": "write('new', 'link.txt'); assert read('old.txt') == 'new' and os.path.islink(path('link.txt'))",
    "by a link in the folder": """
        os.symlink(here, "elsewhere")
        with open("elsewhere/new.txt", "w") as file: file.write("new")
        assert read("new.txt") == "new" and "new.txt" in os.listdir("elsewhere")
        os.unlink("elsewhere")
        """,
    "by ..": """
        name = os.path.relpath(path("old.txt"))
        with open(name, "a") as file: file.write("new")
        with open(name) as file: assert file.read() == "oldnew" == read("old.txt")
        """,
    "from there": """
        before = os.getcwd(); os.chdir(here)
        with open("new.txt", "w") as file: file.write("new")
        os.mkdir("made"); os.chdir("made")
        with open("deep.txt", "w") as file: file.write("deep")
        assert os.getcwd() == path("made") and read("new.txt") == "new" and read("made", "deep.txt") == "deep"
        os.chdir(before)
        """,
    "pathlib": """
        place = pathlib.Path(here)
        (place / "made" / "deep").mkdir(parents=True); (place / "made" / "deep" / "new.txt").write_text("new")
        (place / "touched.txt").touch(); (place / "old.txt").unlink()
        assert sorted(map(str, place.rglob("*.txt"))) == sorted(
            map(path, ["folder/inner.txt", "link.txt", "made/deep/new.txt", "touched.txt"]))
        assert (place / "made").is_dir() and not (place / "old.txt").exists()
        """,
    "makedirs": """
        os.makedirs(path("folder", "a", "b")); os.makedirs(path("folder"), exist_ok=True)
        assert sorted(os.listdir(path("folder"))) == ["a", "inner.txt"]
        os.removedirs(path("folder", "a", "b")); assert os.listdir(path("folder")) == ["inner.txt"]
        """,
    "mkdir of what is there": """
        try: os.mkdir(path("folder"))
        except FileExistsError as error: assert error.filename == path("folder")
        else: raise AssertionError
        assert read("folder", "inner.txt") == "inner"
        """,
    "remove": """
        os.remove(path("old.txt")); assert not os.path.exists(path("old.txt"))
        assert sorted(os.listdir(here)) == ["folder", "link.txt", "list.db"]
        try: os.remove(path("old.txt"))
        except FileNotFoundError: pass
        else: raise AssertionError
        write("again", "old.txt"); assert read("old.txt") == "again"
        """,
    "rmdir": """
        try: os.rmdir(path("folder"))
        except OSError as error: assert error.filename == path("folder")
        else: raise AssertionError
        os.remove(path("folder", "inner.txt")); os.rmdir(path("folder"))
        assert not os.path.isdir(path("folder")) and "folder" not in os.listdir(here)
        os.mkdir(path("folder")); assert os.listdir(path("folder")) == []
        """,
    "rmdir of a file": """
        try: os.rmdir(path("old.txt"))
        except NotADirectoryError: pass
        else: raise AssertionError
        assert read("old.txt") == "old"
        """,
    "rename": """
        os.rename(path("old.txt"), path("moved.txt"))
        assert read("moved.txt") == "old" and not os.path.exists(path("old.txt"))
        os.rename(path("folder"), path("other")); assert read("other", "inner.txt") == "inner"
        assert sorted(os.listdir(here)) == ["link.txt", "list.db", "moved.txt", "other"]
        """,
    "rename into and out of": """
        os.replace(path("old.txt"), "mine.txt"); assert open("mine.txt").read() == "old"
        os.replace("mine.txt", path("theirs.txt")); assert read("theirs.txt") == "old"
        """,
    "rename onto a folder": """
        os.mkdir(path("made"))
        try: os.rename(path("made"), path("folder"))
        except OSError: pass
        else: raise AssertionError
        assert read("folder", "inner.txt") == "inner"
        """,
    "a hard link": """
        os.link(path("old.txt"), path("same.txt")); write("N", "same.txt", mode="r+")
        assert read("old.txt") == "Nld"
        """,
    "a hard link in the folder": """
        os.link(path("old.txt"), "same.txt")
        with open("same.txt", "a") as file: file.write("new")
        os.unlink("same.txt")
        """,
    "symlink": """
        os.symlink("old.txt", path("new.txt")); assert read("new.txt") == "old"
        assert os.readlink(path("new.txt")) == "old.txt"
        write("new", "new.txt"); assert read("old.txt") == "new"
        os.unlink(path("link.txt")); assert read("old.txt") == "new" and not os.path.lexists(path("link.txt"))
        """,
    "truncate": "os.truncate(path('old.txt'), 1); assert read('old.txt') == 'o'",
    "chmod, utime": """
        os.chmod(path("old.txt"), 0o600); os.utime(path("old.txt"), (1, 2)); os.utime(path("folder"), (3, 4))
        status = os.stat(path("old.txt")); assert (status.st_mode & 0o777, status.st_mtime) == (0o600, 2)
        assert os.stat(path("folder")).st_mtime == 4 and read("folder", "inner.txt") == "inner"
        """,
    "rmtree": """
        import shutil
        write("new", "folder", "new.txt"); os.makedirs(path("folder", "deep", "deeper"))
        shutil.rmtree(path("folder")); assert not os.path.exists(path("folder"))
        os.mkdir(path("folder")); assert os.listdir(path("folder")) == []
        """,
    "copies and moves": """
        import shutil
        shutil.copy(path("old.txt"), path("a.txt")); shutil.copytree(path("folder"), path("b"))
        shutil.move(path("folder"), path("c")); shutil.copy2(path("old.txt"), "d.txt")
        shutil.move("d.txt", path("d.txt"))
        assert [read("a.txt"), read("b", "inner.txt"), read("c", "inner.txt"), read("d.txt")] == [
            "old", "inner", "inner", "old"]
        assert not os.path.exists(path("folder"))
        """,
    "tempfile": """
        import tempfile
        with tempfile.NamedTemporaryFile("w+", dir=here, delete=False) as file: file.write("new")
        assert open(file.name).read() == "new" and os.path.dirname(file.name) == here
        with tempfile.TemporaryDirectory(dir=here) as made: assert os.path.isdir(made)
        assert not os.path.exists(made)
        with tempfile.TemporaryFile(dir=here) as file: file.write(b"new")
        """,
    "listings": """
        import glob
        write("new", "folder", "new.txt"); os.remove(path("folder", "inner.txt"))
        assert glob.glob(path("folder", "*")) == [path("folder", "new.txt")]
        walked = [(folder, sorted(names)) for folder, _, names in os.walk(here)]
        assert walked == [(here, ["link.txt", "list.db", "old.txt"]), (path("folder"), ["new.txt"])], walked
        (entry,) = os.scandir(path("folder"))
        assert (entry.name, entry.path, entry.is_file(), entry.is_dir(), entry.stat().st_size) == (
            "new.txt", path("folder", "new.txt"), True, False, 3)
        """,
    "logging, csv, pickle, zip": """
        import csv, logging, pickle, zipfile
        handler = logging.FileHandler(path("log.txt")); handler.emit(logging.makeLogRecord({"msg": "said"}))
        handler.close(); assert read("log.txt") == "said\\n"
        with open(path("a.csv"), "w") as file: csv.writer(file).writerow([1, 2])
        with open(path("a.pickle"), "wb") as file: pickle.dump(7, file)
        with open(path("a.pickle"), "rb") as file: assert pickle.load(file) == 7
        with zipfile.ZipFile(path("a.zip"), "w") as file: file.writestr("x", "y")
        with zipfile.ZipFile(path("a.zip")) as file: assert file.read("x") == b"y"
        """,
    "sqlite3": """
        import sqlite3
        base = sqlite3.connect(path("list.db")); base.execute("insert into list values (2)"); base.commit(); base.close()
        base = sqlite3.connect("file:" + path("list.db") + "?mode=ro", uri=True)
        assert base.execute("select * from list").fetchall() == [(1,), (2,)]; base.close()
        """,
    "numpy": """
        import numpy
        numpy.save(path("a.npy"), numpy.ones(3)); assert numpy.load(path("a.npy")).sum() == 3
        numpy.savez(path("a.npz"), x=numpy.ones(3)); numpy.ones(2).tofile(path("a.bin"))
        assert numpy.load(path("a.npz"))["x"].sum() == 3 and numpy.fromfile(path("a.bin")).sum() == 2
        array = numpy.memmap(path("old.txt"), "u1", "r+"); array[0] = 65; array.flush(); assert read("old.txt") == "Ald"
        """,
    "h5py": """
        import h5py
        with h5py.File(path("a.h5"), "w") as file: file["x"] = [1, 2]
        with h5py.File(path("a.h5"), "a") as file: file["y"] = 3
        with h5py.File(path("a.h5")) as file: assert sorted(file) == ["x", "y"]
        """,
    "a fork": """
        import multiprocessing
        child = multiprocessing.get_context("fork").Process(target=write, args=("new", "new.txt"))
        child.start(); child.join(); assert read("new.txt") == "new"
        """,
    "pickled functions": """
        import multiprocessing, pickle
        assert pickle.loads(pickle.dumps([os.listdir, open, os.stat])) == [os.listdir, open, os.stat]
        write("new", "new.txt")
        with multiprocessing.get_context("fork").Pool(1) as pool: assert pool.map(os.listdir, [path("folder")]) == [["inner.txt"]]
        """,
    "devices": """
        with open(os.devnull, "w") as file: file.write("nothing")
        with open("/dev/stdout", "w") as file: file.write("")
        """,
}


class World:
    """A copy of a program's folder, and a folder outside of it."""

    def __init__(self, root, name="copy"):
        self.root, self.copy, self.outside = root, root / name, root / "outside"
        (self.copy / "program").mkdir(parents=True)
        (self.copy / "packages").mkdir()
        (self.copy / "packages" / "strategy_clinic").symlink_to(files.PACKAGE)
        self.events = self.copy / "events.jsonl"

    def fill(self, name):
        import sqlite3

        folder = self.outside / name
        (folder / "folder").mkdir(parents=True)
        (folder / "old.txt").write_text("old")
        (folder / "folder" / "inner.txt").write_text("inner")
        (folder / "link.txt").symlink_to("old.txt")
        base = sqlite3.connect(folder / "list.db")
        base.execute("create table list (number)")
        base.execute("insert into list values (1)")
        base.commit()
        base.close()
        return folder

    def run(self, text, *arguments, options=(), landlock=True):
        """Runs a program that may write in its copy alone; returns the process, and events in `seen`."""
        (self.copy / "program" / "train.py").write_text(BEGINNING + textwrap.dedent(text))
        self.events.unlink(missing_ok=True)
        view = ["--view", str(self.copy / "view"), "--own", str(self.copy)]
        main = self.copy / "packages" / "strategy_clinic" / "observer" / "__main__.py"
        command = [sys.executable, str(main)]
        if not landlock:
            command = [sys.executable, "-c", WITHOUT_LANDLOCK, str(main.parent.parent.parent)]
        command += ["--events", str(self.events), *view, *options, "--", "train.py", *arguments]
        done = subprocess.run(
            command,
            cwd=self.copy / "program",
            capture_output=True,
            text=True,
            env={**os.environ, "TMPDIR": str(self.copy), "PYTHONDONTWRITEBYTECODE": "1"},
        )
        assert self.events.exists(), done.stderr
        children = self.events.parent.glob(f"{self.events.name}{stacks.CHILD}*[0-9]")
        written = [file.read_text() for file in (self.events, *sorted(children))]
        lines = [line for text in written for line in text.splitlines()]
        self.seen = list(map(from_json, lines))
        return done

    def of(self, kind):
        return [event for event in self.seen if isinstance(event, kind)]


def listing(folder):
    """Returns all that could be changed in a folder."""
    found = {}
    for place, folders, names in os.walk(folder):
        for name in ("", *folders, *names):
            path = os.path.join(place, name)
            status = os.lstat(path)
            text = os.readlink(path) if os.path.islink(path) else ""
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    text += hashlib.sha256(file.read()).hexdigest()
            found[path] = (status.st_mode, status.st_mtime_ns, status.st_nlink, status.st_ino, text)
    return found


@pytest.fixture(scope="module")
def all_ways(tmp_path_factory):
    """Runs all ways in one process; returns what went wrong in each, and what has changed outside."""
    world = World(tmp_path_factory.mktemp("ways"))
    folders = {way: str(world.fill(f"way{number}")) for number, way in enumerate(WAYS)}
    before = listing(world.outside)
    text = f"""
        import json, traceback
        ways, folders, failed = json.loads({json.dumps(json.dumps(WAYS))}), {folders!r}, {{}}
        for name, way in ways.items():
            import textwrap
            here = folders[name]
            try: exec(textwrap.dedent(way), globals())
            except BaseException: failed[name] = traceback.format_exc()
        with open("failed.json", "w") as file: json.dump(failed, file)
        """
    done = world.run(text, str(world.outside))
    assert done.returncode == 0, (done.stderr, world.seen[-2:])
    failed = json.loads((world.copy / "program" / "failed.json").read_text())
    after = listing(world.outside)
    changed = {each for each in before.keys() | after.keys() if before.get(each) != after.get(each)}
    return world, folders, failed, changed


@pytest.mark.parametrize("way", WAYS)
def test_nothing_outside_changes_and_the_program_sees_it_changed(way, all_ways):
    world, folders, failed, changed = all_ways
    assert way not in failed, failed[way]
    assert not [each for each in changed if each.startswith(folders[way])]
    assert not world.of(events.ObserverFailed) and not world.of(events.WriteRefused)


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.here = world.fill("here")
    world.before = listing(world.outside)
    yield world
    assert listing(world.outside) == world.before


@pytest.mark.slow
def test_a_later_run_with_the_same_view_sees_what_was_written(world):
    first = world.run("write('new', 'new.txt'); os.remove(path('old.txt'))", str(world.here))
    assert first.returncode == 0, first.stderr
    text = "print(read('new.txt'), sorted(os.listdir(here)))"
    again = world.run(text, str(world.here))
    assert again.stdout == "new ['folder', 'link.txt', 'list.db', 'new.txt']\n", again.stderr
    other = World(world.root, "other")
    print_all = other.run("print(sorted(os.listdir(here)), read('old.txt'))", str(world.here))
    assert print_all.stdout == "['folder', 'link.txt', 'list.db', 'old.txt'] old\n"


@pytest.mark.slow
def test_without_a_view_nothing_is_redirected(tmp_path):
    world = World(tmp_path)
    folder = world.fill("here")
    (world.copy / "program" / "train.py").write_text(
        f"open({str(folder / 'new')!r}, 'w').write('x')"
    )
    main = world.copy / "packages" / "strategy_clinic" / "observer" / "__main__.py"
    command = [sys.executable, str(main), "--events", str(world.events), "--", "train.py"]
    subprocess.run(command, cwd=world.copy / "program", check=True)
    assert (folder / "new").read_text() == "x"


# Ways that are not redirected. The program must not get to its end.
UNSEEN = {
    "FileIO": "import io; io.FileIO(path('new.txt'), 'w')",
    "posix": "import posix; posix.mkdir(path('made'))",
    "posix, of what is there": "import posix; posix.unlink(path('old.txt'))",
    "a descriptor": "file = os.open(path('old.txt'), os.O_RDONLY); os.fchmod(file, 0o600)",
    "a fork": """
        import io, multiprocessing
        child = multiprocessing.get_context("fork").Process(target=io.FileIO, args=(path("new.txt"), "w"))
        child.start(); child.join()
        """,
}


@pytest.mark.slow
@pytest.mark.parametrize("way", UNSEEN)
def test_what_cannot_be_redirected_ends_the_process_first(way, world):
    done = world.run(textwrap.dedent(UNSEEN[way]) + "\nprint('went on')", str(world.here))
    assert (done.returncode, done.stdout) == (-9, "")
    (refused,) = world.of(events.WriteRefused)
    assert refused.path.startswith(str(world.here))


needs_landlock = pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")


@pytest.mark.slow
@needs_landlock
@pytest.mark.parametrize(
    "command",
    ["rm -r {}/folder", "echo new > {}/new.txt", "mv {0}/old.txt {0}/x", "cp train.py {}"],
)
def test_a_child_program_may_not_write_outside(command, world):
    text = f"import subprocess\nsubprocess.run({command.format(world.here)!r}, shell=True)\nprint('on')"
    assert world.run(text, str(world.here)).stdout == "on\n"
    (failed,) = world.of(events.HeldChildFailed)
    assert str(world.here) in failed.command and failed.status > 0


@pytest.mark.slow
@needs_landlock
def test_a_child_program_may_write_in_the_folder(world):
    text = "print(os.system('cp train.py copied.py && echo > /dev/null'), os.listdir())"
    assert world.run(text, str(world.here)).stdout.startswith("0 ")
    assert not world.of(events.HeldChildFailed)


@pytest.mark.slow
@needs_landlock
def test_compiled_code_may_not_write_outside(world):
    text = """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        found = libc.open(path("new.txt").encode(), os.O_WRONLY | os.O_CREAT, 0o666)
        if found < 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error), path("new.txt"))
        """
    assert world.run(text, str(world.here)).returncode == 1
    (refused,) = world.of(events.WriteRefused)
    assert refused.path == str(world.here / "new.txt") and refused.location


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["os.system('true')", "import subprocess\nsubprocess.run(['true'])", "os.popen('true').read()"],
)
def test_without_landlock_no_child_program_is_started(text, world):
    done = world.run(text + "\nprint('went on')", str(world.here), landlock=False)
    assert (done.returncode, done.stdout) == (-9, "")
    (refused,) = world.of(events.WriteRefused)
    assert refused.path.endswith("true")


@pytest.mark.slow
def test_without_landlock_the_standard_library_may_ask_the_system(world):
    text = "import platform\nprint(bool(platform.uname().processor is not None))"
    assert world.run(text, str(world.here), landlock=False).stdout == "True\n"


@pytest.mark.slow
def test_what_tensorflow_writes_is_redirected(world, started):
    import tensorflow as tf

    checkpoints, value = world.here / "checkpoints", tf.Variable(1.0)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(value=value), str(checkpoints), 2)
    for _ in range(3):
        value.assign_add(1.0)
        manager.save()
    world.before = listing(world.outside)
    text = """
        import glob
        import h5py
        import keras
        import numpy as np
        import tensorflow as tf

        folder = path("checkpoints")
        value = tf.Variable(0.0)
        checkpoint = tf.train.Checkpoint(value=value)
        manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
        assert manager.latest_checkpoint == path("checkpoints", "ckpt-3"), manager.latest_checkpoint
        checkpoint.restore(manager.latest_checkpoint); assert value.numpy() == 4
        for number in range(3): value.assign(10.0 + number); saved = manager.save()
        assert saved == tf.train.latest_checkpoint(folder) == path("checkpoints", "ckpt-6"), saved
        assert sorted(each for each in os.listdir(folder) if each.endswith("index")) == ["ckpt-5.index", "ckpt-6.index"]
        value.assign(0.0); checkpoint.restore(path("checkpoints", "ckpt-5")); assert value.numpy() == 11
        assert tf.train.load_checkpoint(folder).has_tensor("value/.ATTRIBUTES/VARIABLE_VALUE")
        assert not tf.io.gfile.exists(path("checkpoints", "ckpt-2.index"))

        with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope(): several = tf.Variable(5.0)
        prefix = tf.train.Checkpoint(value=several).save(path("several", "ckpt")); several.assign(0.0)
        assert prefix == path("several", "ckpt-1"), prefix
        tf.train.Checkpoint(value=several).restore(prefix); assert several.numpy() == 5

        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        for name in ("model.keras", "model.h5"):
            model.save(path(name))
            loaded = keras.saving.load_model(path(name), compile=False)
            assert np.allclose(model(np.ones((1, 2))), loaded(np.ones((1, 2))))
        model.save_weights(path("w.weights.h5")); model.load_weights(path("w.weights.h5"))
        model.export(path("exported"), verbose=False)
        again = tf.saved_model.load(path("exported")); served = again.serve(np.ones((1, 2), "float32"))
        assert np.allclose(served, model(np.ones((1, 2))))
        tf.saved_model.save(checkpoint, path("saved")); assert tf.saved_model.load(path("saved")).value.numpy() == 11

        gfile = tf.io.gfile
        gfile.makedirs(path("made", "deep"))
        with gfile.GFile(path("made", "a.txt"), "w") as file: file.write("new")
        with gfile.GFile(path("old.txt"), "a") as file: file.write("new")
        with gfile.GFile(path("old.txt")) as file: assert file.read() == "oldnew"
        gfile.rename(path("made", "a.txt"), path("made", "b.txt")); gfile.copy(path("made", "b.txt"), path("made", "c.txt"))
        assert sorted(gfile.listdir(path("made"))) == ["b.txt", "c.txt", "deep"]
        assert gfile.glob(path("made", "*.txt")) == [path("made", "b.txt"), path("made", "c.txt")]
        gfile.rmtree(path("folder")); gfile.remove(path("link.txt"))
        assert not gfile.exists(path("folder")) and not gfile.isdir(path("folder")) and not gfile.exists(path("link.txt"))

        with tf.summary.create_file_writer(path("logs")).as_default(): tf.summary.write("x", tf.constant(1.0), 1)
        tf.summary.flush(); assert len(glob.glob(path("logs", "events*"))) == 1
        with tf.io.TFRecordWriter(path("a.tfrecord")) as writer: writer.write(b"one")
        data = tf.data.TFRecordDataset([path("a.tfrecord")])
        assert [each.numpy() for each in data] == [b"one"]
        tf.io.write_file(path("deep", "er", "x.txt"), "text"); assert tf.io.read_file(path("deep", "er", "x.txt")) == b"text"
        assert read("deep", "er", "x.txt") == "text"
        names = tf.data.Dataset.list_files(path("deep", "er", "*"))
        assert list(names.as_numpy_iterator()) == [os.fsencode(path("deep", "er", "x.txt"))]
        assert list(names.map(tf.io.read_file).as_numpy_iterator()) == [b"text"]
        @tf.function
        def written(name):
            tf.io.write_file(name, "graph"); return tf.io.read_file(name)
        assert written(tf.constant(path("graph.txt"))) == b"graph" and read("graph.txt") == "graph"
        @tf.function
        def listed(pattern): return tf.io.matching_files(pattern)
        assert listed(tf.constant(path("gr*.txt"))).numpy().tolist() == [os.fsencode(path("graph.txt"))]
        numbers = tf.data.Dataset.range(3)
        numbers.save(path("data")); assert list(tf.data.Dataset.load(path("data")).as_numpy_iterator()) == [0, 1, 2]
        for _ in range(2): assert list(numbers.cache(path("cached")).as_numpy_iterator()) == [0, 1, 2]
        print("done")
        """
    done = world.run(text, str(world.here), options=("--devices", "2"))
    assert done.stdout.endswith("done\n"), done.stderr[-3000:]
    assert not world.of(events.ObserverFailed) and not world.of(events.WriteRefused)
    assert (checkpoints / "ckpt-2.index").exists()
