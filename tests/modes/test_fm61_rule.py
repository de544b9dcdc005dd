"""The examiner's rule for fm61: many steps of several replicas outside of a graph."""

import pytest
from recorded import LINE, found, modes, run
from strategy_clinic.examiner.engine import diagnose
from strategy_clinic.examiner.rule import Runs
from strategy_clinic.observer.events import RunEager


def test_many_steps_by_python():
    (finding,) = found(run(RunEager(LINE, 50, 2, False)))
    assert (finding.mode, finding.line) == ("fm61", 7)
    assert "50 calls that trained, none of them in a graph" in str(finding.proof)


@pytest.mark.parametrize(
    "eager",
    [RunEager(LINE, 49, 2, False), RunEager(LINE, 50, 1, False), RunEager(LINE, 50, 2, True),
     RunEager((), 50, 2, False)],
    ids=["few steps", "one replica", "by choice", "no line of the program"],
)  # fmt: skip
def test_near_misses(eager):
    assert modes(run(eager)) == []


@pytest.mark.parametrize("calls, notes", [(9, 0), (10, 1), (49, 1), (50, 0)])
def test_some_steps_by_python_are_a_note(calls, notes):
    told = [*map(str, diagnose(Runs([run(RunEager(LINE, calls, 2, False))])).notes)]
    assert (
        len([note for note in told if note.startswith(f"Python executes {calls} steps")]) == notes
    )
