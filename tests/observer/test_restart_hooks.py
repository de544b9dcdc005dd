"""What a program looks for when it starts, and a kill in the middle of a file: without TensorFlow, in real processes."""

import functools
import glob
import os
import pickle
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import numpy as np
import pytest
from strategy_clinic.examiner.reading import from_json
from strategy_clinic.observer.context import Context, Settings
from strategy_clinic.observer.events import FileWritten, LookedFor
from strategy_clinic.observer.restarts import LOOKING, Restarts
from thorough import thorough

CALLS = {
    "exists": lambda path: os.path.exists(path),
    "exists by keyword": lambda path: os.path.exists(path=path),
    "isfile": lambda path: os.path.isfile(path),
    "isdir": lambda path: os.path.isdir(path),
    "listdir": lambda path: os.listdir(path),
    "listdir by keyword": lambda path: os.listdir(path=path),
    "glob": lambda path: glob.glob(path),
    "iglob": lambda path: list(glob.iglob(path)),
    "Path.exists": lambda path: Path(path).exists(),
    "Path.is_file": lambda path: Path(path).is_file(),
    "Path.is_dir": lambda path: Path(path).is_dir(),
    "Path.glob": lambda path: list(Path(path).glob("*")),
    "Path.iterdir": lambda path: list(Path(path).iterdir()),
}


@pytest.fixture
def context(tmp_path):
    context = Context(Settings(str(tmp_path / "events.jsonl")))
    Restarts(context).watch()
    yield context
    context.stopped = True
    context.patches.restore()


def events_of(context):
    file = Path(context.settings.events)
    return [from_json(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("name", CALLS)
def test_what_a_program_looks_for_is_reported(context, tmp_path, name):
    folder = tmp_path / "saved"
    folder.mkdir()
    result = CALLS[name](str(folder))
    (looked,) = events_of(context)
    lists = any(word in name for word in ("listdir", "glob", "iterdir"))
    assert isinstance(looked, LookedFor)
    assert (looked.path, looked.lists) == (str(folder), lists)
    assert looked.location[0].path == __file__
    context.patches.restore()
    assert CALLS[name](str(folder)) == result


def test_every_function_that_looks_has_a_call():
    names = {name for _, functions, _ in LOOKING for name in functions}
    assert names == {name.partition(" ")[0].removeprefix("Path.") for name in CALLS}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_process_that_is_not_observed_gets_the_plain_function(context, protocol):
    places = [(owner, name) for owner, names, _ in LOOKING for name in names]
    functions = [getattr(owner, name) for owner, name in places]
    given = [*functions, functools.partial(os.path.exists, "x"), Path("x").exists]
    pickled = pickle.dumps(given, protocol)
    *same, partial, method = pickle.loads(pickled)
    assert same == functions and partial.func is os.path.exists
    context.patches.restore()
    *plain, partial, method = pickle.loads(pickled)
    assert plain == [getattr(owner, name) for owner, name in places]
    assert partial.func is os.path.exists and method.__func__ is Path.exists


def test_a_descriptor_and_what_a_library_looks_for_are_not_reported(context, tmp_path):
    subprocess.run([sys.executable, "-c", ""], check=True, cwd=tmp_path)
    os.listdir(os.open(tmp_path, os.O_RDONLY))
    context.patches.restore()
    assert not Path(context.settings.events).exists()


def opened(path, mode="r"):
    with open(path, mode):
        pass


READS = {
    "open": opened,
    "os.open": lambda path: os.open(path, os.O_RDONLY),
    "read_text": lambda path: Path(path).read_text(),
    "read_bytes": lambda path: Path(path).read_bytes(),
    "numpy.load": lambda path: np.load(path),
    "numpy.fromfile": lambda path: np.fromfile(path),
}
WRITES = {
    "open": lambda path: opened(path, "w"),
    "new": lambda path: opened(path, "x"),
    "append": lambda path: opened(path, "ab"),
    "update": lambda path: opened(path, "r+"),
    "os.open": lambda path: os.close(os.open(path, os.O_WRONLY)),
    "write_text": lambda path: Path(path).write_text("{}"),
}


@pytest.mark.parametrize("name", READS)
def test_a_file_that_is_read_and_does_not_exist(context, tmp_path, name):
    path = str(tmp_path / "state.npy")
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            READS[name](path)
    looked = [each for each in events_of(context) if each.path == path]
    assert [type(each) for each in looked] == [LookedFor]
    assert looked[0].location[0].path == __file__ and not looked[0].lists


@pytest.mark.parametrize("name", WRITES)
def test_a_file_that_is_looked_for_and_written(context, tmp_path, name):
    path = tmp_path / "state.json"
    path.exists()
    if name in ("update", "os.open"):
        path.write_text("{}")
    else:
        WRITES[name](path)
        path.unlink()
    WRITES[name](path)
    looked, written = events_of(context)
    assert isinstance(looked, LookedFor) and isinstance(written, FileWritten)
    assert (written.path, written.location[0].path) == (str(path), __file__)


def test_files_that_tell_nothing_of_a_restart(context, tmp_path):
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "a.json").read_text()
    with open(os.open(tmp_path / "a.json", os.O_RDONLY)) as file:
        file.read()
    with pytest.raises(FileNotFoundError):
        opened(Path(os.__file__).parent / "no.cfg")  # of Python's own
    context.patches.restore()
    assert not Path(context.settings.events).exists()


IN_SAVES = """
    import sys, zipfile
    from strategy_clinic.observer.context import Context, Settings
    from strategy_clinic.observer.kills import SAVES, Kills

    class Model:
        def save(self, path):
            with zipfile.ZipFile(path, "w") as file:
                file.writestr("weights", bytes(100_000))

    context = Context(Settings("events.jsonl", die_in_save=2))
    kills = Kills(context)
    kills.watch()
    context.patches.wrap(Model, "save", before=kills.save_begins, after=lambda *_: None, group=SAVES)
    with zipfile.ZipFile("other.zip", "w") as file:  # no save of a model
        file.writestr("a", "b")
    for number in range(3):
        Model().save(f"{number}.zip")
"""


@pytest.mark.slow
def test_a_process_is_killed_between_the_first_byte_and_the_end_of_a_save(tmp_path):
    script = [sys.executable, "-c", textwrap.dedent(IN_SAVES)]
    assert subprocess.run(script, cwd=tmp_path).returncode == -9
    assert zipfile.is_zipfile(tmp_path / "other.zip")
    assert zipfile.is_zipfile(tmp_path / "0.zip")
    assert (tmp_path / "1.zip").stat().st_size > 0
    assert not zipfile.is_zipfile(tmp_path / "1.zip")
    assert not (tmp_path / "2.zip").exists()


FORKED = """
    import os, time
    from strategy_clinic.observer.context import Context, Settings
    from strategy_clinic.observer.kills import Kills

    kills = Kills(Context(Settings("events.jsonl", die=True)))
    if os.fork() == 0:
        kills.save_ended()
    time.sleep(30)
"""


@pytest.mark.slow
def test_a_program_is_killed_with_the_process_that_saves(tmp_path):
    script = [sys.executable, "-c", textwrap.dedent(FORKED)]
    assert subprocess.run(script, cwd=tmp_path, timeout=20).returncode == -9


class Callback:
    def on_train_begin(self, logs=None):
        pass


class EarlyStopping(Callback):
    best, wait, monitor = 0.5, 2, "loss"


class Other(Callback):
    pass


def test_a_callback_that_inherits_a_method_from_the_same_class_has_no_state(monkeypatch, tmp_path):
    context = Context(Settings(str(tmp_path / "events.jsonl")))
    monkeypatch.setattr(context.provenance, "stack", tuple)  # which needs TensorFlow
    hooks = Restarts(context)
    context.patches.wrap(Callback, "on_train_begin", after=hooks.training_begins)
    Other().on_train_begin()
    EarlyStopping().on_train_begin()
    context.patches.restore()
    (state,) = events_of(context)
    assert (state.callback, state.begins, state.best, state.wait) == ("EarlyStopping", True, 0.5, 2)


CONTINUED = """
import importlib, sys

from strategy_clinic.observer.context import Context, Settings
from strategy_clinic.observer.restarts import Restarts

keras = importlib.import_module(sys.argv[1])


class Continued(keras.callbacks.EarlyStopping):
    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        for epoch, loss in enumerate([0.5, 0.3, 0.4]):
            self.on_epoch_end(epoch, {"loss": loss})


Restarts(Context(Settings("events.jsonl"))).watch_keras(sys.argv[1])
callback = Continued(monitor="loss", patience=9)
callbacks = keras.callbacks.CallbackList([callback, keras.callbacks.Callback()])
callbacks.on_train_begin()
callbacks.on_epoch_end(3, {"loss": 0.35})
"""


@pytest.mark.slow
@pytest.mark.parametrize("package", ["keras", thorough("tf_keras")])
def test_what_a_callback_begins_with_is_known_when_all_have_begun(package, tmp_path):
    """A class of the program's own may go on with the best value of an earlier run."""
    command = [sys.executable, "-c", CONTINUED, package]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    context = Context(Settings(str(tmp_path / "events.jsonl")))
    states = [(each.begins, each.best, each.wait) for each in events_of(context)]
    assert states == [(True, 0.3, 1), (False, 0.3, 2)]
