"""A save has the name that its file gets: programs write under another name, and rename what is whole."""

import pytest
from recorded import LINE, run, saved
from strategy_clinic.observer.events import FileMoved, Saved, SavedAgain, Started

HERE = Started(1, "/program")


def path_of(*events):
    (save,) = run(HERE, *events).of(Saved)
    return save.path


@pytest.mark.parametrize(
    "path, source, target, expected",
    [
        ("tmp.npz", "tmp.npz", "state.npz", "state.npz"),
        ("/program/tmp.npz", "tmp.npz", "state.npz", "state.npz"),
        ("tmp.npz", "/program/tmp.npz", "/program/state.npz", "/program/state.npz"),
        ("tmp/ck", "tmp/ck.index", "last/ck.index", "last/ck"),
        ("tmp/ck", "tmp/ck.data-00000-of-00001", "last/ck.data-00000-of-00001", "tmp/ck"),
        ("new/ck-1", "new", "last", "last/ck-1"),
        ("newer/ck-1", "new", "last", "newer/ck-1"),
    ],
)
def test_the_name_after_a_file_or_its_folder_was_renamed(path, source, target, expected):
    assert path_of(saved(path=path), FileMoved(LINE, source, target)) == expected


def test_a_copy_keeps_its_name():
    assert path_of(saved(path="a.keras"), FileMoved(LINE, "a.keras", "b.keras", True)) == "a.keras"


def test_what_was_renamed_before_the_save_was_another_file():
    before = FileMoved(LINE, "state.npz", "old.npz")
    assert path_of(before, saved(path="state.npz")) == "state.npz"


def test_the_last_save_becomes_the_last_but_one():
    """Its second move is that of the file that was saved before."""
    events = (
        saved(path="tmp.npz"),
        FileMoved(LINE, "tmp.npz", "state.npz"),
        SavedAgain("tmp.npz", 4),
        FileMoved(LINE, "other.npz", "state.bak"),
    )
    recording = run(HERE, *events)
    assert [each.path for each in recording.of(Saved)] == ["state.npz"]
    assert [each.path for each in recording.of(SavedAgain)] == ["state.npz"]


def test_two_renames_one_after_the_other():
    moves = FileMoved(LINE, "a", "b"), FileMoved(LINE, "b", "c")
    assert path_of(saved(path="a"), *moves) == "c"


def test_saves_without_a_rename_are_as_they_were():
    assert path_of(saved(path="ck-1")) == "ck-1"
