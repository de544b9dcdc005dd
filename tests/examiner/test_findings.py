"""Findings: how their locations are printed, and moved to the cells of a notebook."""

from dataclasses import replace

from recorded import LINE, OTHER, run
from strategy_clinic.examiner.findings import Location, Text
from strategy_clinic.examiner.rule import line_of, observed


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
    assert str(moved.proof) == "observed on 2 devices: cell 2, line 20 saved it"
    assert str(finding.proof) == "observed on 2 devices: line 20 saved it"


def test_other_words_where_no_line_is_known():
    assert line_of((), "a callback") == "a callback"
