"""Findings: how their locations are printed, and moved to the cells of a notebook."""

from dataclasses import replace

import pytest
from recorded import LINE, OTHER, run, stack
from strategy_clinic.examiner.findings import Location, Text
from strategy_clinic.examiner.rule import line_of, observed
from strategy_clinic.observer.events import KerasDistributionSet, StrategyMade


def test_a_location_is_printed_as_its_reader_has_it():
    assert str(Location(LINE)) == "line 7"
    assert str(Location(LINE, cell=3)) == "cell 3, line 7"
    assert (Location().file, Location().line, bool(Location())) == ("", 0, False)


def test_the_locations_within_sentences_are_moved_too():
    def to_cell(location):
        return replace(location, cell=2)

    message = Text("something else at ", Location(OTHER))
    finding = observed("one", run(), LINE, message, line_of(OTHER, "a step"), " saved it")
    moved = finding.relocated(to_cell)
    assert (moved.location.cell, moved.line, moved.file) == (2, 7, "/program/train.py")
    assert str(moved.message) == "something else at cell 2, line 20"
    assert str(moved.proof) == "observed in a run without a strategy: cell 2, line 20 saved it"
    assert str(finding.proof) == "observed in a run without a strategy: line 20 saved it"


def test_devices_are_told_where_a_strategy_may_use_them():
    made = StrategyMade(LINE, "MirroredStrategy", 2)
    by_keras = KerasDistributionSet(LINE, "DataParallel", 2)
    for event in (made, by_keras):
        assert str(observed("one", run(event), LINE, "").proof) == "observed on 2 devices: "


def test_a_line_of_another_file_is_told_with_its_name():
    other = stack("/program/nets/layers.py", 3)
    message = Text("made at ", Location(other), " and ", Location(OTHER))
    finding = observed("one", run(), LINE, message).relocated(lambda each: each)
    assert str(finding.message) == "made at line 3 of layers.py and line 20"
    in_cell = finding.relocated(lambda each: replace(each, cell=2))
    assert str(in_cell.message) == "made at cell 2, line 3 and cell 2, line 20"
    assert str(Location().seen_from("train.py")) == "line 0"


@pytest.mark.parametrize(
    "file, other, name",
    [
        ("/p/a/model.py", "/p/b/model.py", "a/model.py"),
        ("/p/a/nets/model.py", "/p/b/model.py", "a/nets/model.py"),
        ("/p/a/model.py", "/p/model.py", "a/model.py"),
        ("/p/model.py", "/p/a/model.py", "p/model.py"),
        ("model.py", "/p/model.py", "model.py"),
        ("/p/a/model.py", "/p/b/train.py", "model.py"),
        ("/p/model.py", "/p/model.py", ""),
    ],
)
def test_a_file_with_the_name_of_another_is_told_with_its_folder(file, other, name):
    told = Location(stack(file, 7)).seen_from(other)
    assert str(told) == ("line 7 of " + name if name else "line 7")


def test_other_words_where_no_line_is_known():
    assert line_of((), "a callback") == "a callback"
