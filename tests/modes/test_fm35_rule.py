"""The examiner's rule for fm35: what was made after a restore."""

from dataclasses import replace

from recorded import LINE, ended, found, modes, run, variable
from strategy_clinic.observer.events import RestoredBeforeBuild


def early(*numbers):
    return ended(
        restored_before_build=(RestoredBeforeBuild("ck-1", numbers, "Found 1 object", LINE),)
    )


def test_what_was_made_after_a_restore():
    (finding,) = found(run(variable(1), early(1)))
    assert (finding.mode, finding.line) == ("fm35", 7)
    assert str(finding.proof) == "observed on 2 devices: v1 is in ck-1"


def test_a_restore_on_no_line_of_the_program():
    restore = replace(early(1).restored_before_build[0], location=())
    assert modes(run(variable(1), ended(restored_before_build=(restore,)))) == []


def test_nothing_was_made_after_a_restore():
    assert modes(run(variable(1), early())) == []
