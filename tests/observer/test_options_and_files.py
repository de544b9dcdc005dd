"""The options that a program reads, and the files that it renames or copies: without TensorFlow, in this process."""

import argparse
import optparse
import os
import pickle
import shutil
from pathlib import Path

import pytest
from strategy_clinic.examiner.reading import from_json
from strategy_clinic.observer.audit import listeners
from strategy_clinic.observer.context import Context, Settings
from strategy_clinic.observer.events import FileMoved, OptionRead, SaveKind
from strategy_clinic.observer.files_moved import FilesMoved
from strategy_clinic.observer.options import Options


@pytest.fixture
def context(tmp_path):
    context = Context(Settings(str(tmp_path / "events.jsonl")))
    yield context
    context.stopped = True
    context.patches.restore()


def events_of(context, kind):
    file = Path(context.settings.events)
    events = [from_json(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [each for each in events if isinstance(each, kind)]


def options_of(context):
    return {(each.name, each.value) for each in events_of(context, OptionRead)}


def last_options_of(context):
    return {each.name: each.value for each in events_of(context, OptionRead)}


# Options


def by_argparse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--name", default=argparse.SUPPRESS)
    parser.add_argument_group("more").add_argument("--resume", action="store_true")
    parser.parse_args(["--epochs", "7"])


def by_subcommand():
    parser = argparse.ArgumentParser()
    train = parser.add_subparsers().add_parser("train")
    for name, default in (("--out", None), ("--epochs", 7), ("--name", None)):
        train.add_argument(name, default=default)
    train.add_argument("--resume", action="store_true")
    parser.parse_known_args(args=["train"])


def by_optparse():
    parser = optparse.OptionParser()
    for name, default in (("--out", None), ("--epochs", 7), ("--name", None), ("--resume", False)):
        parser.add_option(name, default=default)
    parser.parse_args([])


def by_absl():
    flags = pytest.importorskip("absl.flags")
    values = flags.FlagValues()
    for name, default in (("out", None), ("epochs", "7"), ("name", None), ("resume", "False")):
        flags.DEFINE_string(name, default, "help", flag_values=values)
    values(["train.py"])


def by_click():
    click = pytest.importorskip("click")

    @click.command()
    @click.option("--out")
    @click.option("--epochs", default=7)
    @click.option("--name")
    @click.option("--resume", is_flag=True)
    def train(**given):
        pass

    train.main([], standalone_mode=False)


@pytest.mark.parametrize("parse", [by_argparse, by_subcommand, by_optparse, by_absl, by_click])
def test_options_and_their_values(context, parse):
    options = Options(context)
    options.watch()
    packages = {
        by_absl: ("absl.flags", options.watch_absl),
        by_click: ("click", options.watch_click),
    }
    if parse in packages:
        name, watch = packages[parse]
        pytest.importorskip(name)
        watch()
    parse()
    expected = {"out": "", "epochs": "7", "name": "", "resume": "False"}
    assert expected.items() <= last_options_of(context).items()


@pytest.mark.parametrize(
    "read",
    [
        lambda name: os.environ.get(name),
        lambda name: os.getenv(name, "runs"),
        lambda name: name in os.environ,
        lambda name: os.environ[name] if name == "CLINIC_SET" else None,
    ],
    ids=["get", "getenv", "in", "item"],
)
def test_what_is_not_in_the_environment(context, monkeypatch, read):
    """A value that is there is never recorded: it may be a secret."""
    monkeypatch.setenv("CLINIC_SET", "secret")
    Options(context).watch()
    assert read("CLINIC_SET") in ("secret", True)
    read("CLINIC_NOT_SET")
    assert options_of(context) <= {("CLINIC_NOT_SET", "")}


def test_the_environment_afterwards(context):
    Options(context).watch()
    context.patches.restore()
    os.environ.get("CLINIC_NOT_SET")
    assert options_of(context) == set()


# Files

MOVES = {
    "rename": lambda one, other: os.rename(one, other),
    "rename by keyword": lambda one, other: os.rename(src=one, dst=other),
    "replace": lambda one, other: os.replace(one, other),
    "Path.rename": lambda one, other: Path(one).rename(other),
    "Path.replace": lambda one, other: Path(one).replace(other),
    "move": lambda one, other: shutil.move(one, other),
    "copy": lambda one, other: shutil.copy(one, other),
    "copy2": lambda one, other: shutil.copy2(src=one, dst=other),
    "copyfile": lambda one, other: shutil.copyfile(one, other),
    "link": lambda one, other: os.link(one, other),
    "symlink": lambda one, other: os.symlink(one, other),
}


@pytest.mark.parametrize("name", MOVES)
def test_a_file_that_gets_another_name(context, tmp_path, name):
    one, other = str(tmp_path / "a.h5"), str(tmp_path / "b.h5")
    Path(one).write_text("weights")
    FilesMoved(context).watch()
    MOVES[name](one, other)
    moved = events_of(context, FileMoved)
    assert {(each.source, each.target) for each in moved} == {(one, other)}
    assert moved[0].location[0].path == __file__


def test_a_file_that_gets_a_new_name_each_time_is_saved_anew(context, tmp_path):
    """Such as one for each epoch; what always replaces the same file is told once."""
    one = str(tmp_path / "part.keras")
    FilesMoved(context).watch()
    for name, is_new in (("1.keras", True), ("2.keras", True), ("2.keras", False)):
        context.is_first("saved", SaveKind.MODEL, one)
        Path(one).write_text("weights")
        os.replace(one, tmp_path / name)
        assert context.is_first("saved", SaveKind.MODEL, one) is is_new


def test_a_file_that_is_copied_into_a_folder(context, tmp_path):
    one, folder = tmp_path / "a.h5", tmp_path / "b"
    one.write_text("weights")
    folder.mkdir()
    FilesMoved(context).watch()
    shutil.copy(one, folder)
    assert [each.target for each in events_of(context, FileMoved)] == [str(folder / "a.h5")]


def test_what_moves_no_file(context, tmp_path):
    FilesMoved(context).watch()
    "a".replace("a", "b")
    {}.copy()
    with pytest.raises(FileNotFoundError):
        os.rename(tmp_path / "none", tmp_path / "other")
    assert pickle.loads(pickle.dumps(os.rename)) is os.rename
    assert events_of(context, FileMoved)[1:] == []


def test_an_observer_that_has_stopped_hears_nothing(context, tmp_path):
    before = len(listeners)
    FilesMoved(context).watch()
    context.stopped = True
    (tmp_path / "a").write_text("")
    os.rename(tmp_path / "a", tmp_path / "b")
    assert len(listeners) <= before
    assert events_of(context, FileMoved) == []
