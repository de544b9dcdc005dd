"""The examiner's rule for fm23: replicas that write to a variable outside the scope."""

from dataclasses import replace

import pytest
from recorded import MINE, found, modes, run, variable, written
from strategy_clinic.observer.events import Owner, VariableSharedCentrally


def test_replicas_that_write_to_a_variable_outside_the_scope():
    (finding,) = found(run(MINE, written(), written()))
    assert (finding.mode, finding.line) == ("fm23", 7)
    assert str(finding.proof) == "observed on 2 devices: 2 replicas wrote to it at line 20"


def test_writes_on_several_lines_are_one_finding():
    (finding,) = found(run(MINE, written(), written(location=MINE.location)))
    assert str(finding.proof).endswith("at line 20")


@pytest.mark.parametrize(
    "events",
    [
        [variable(1, maker=Owner.USER, copies=2), written()],
        [variable(1, maker=Owner.METRIC), written(writer=Owner.METRIC)],
        [MINE, written(writer=Owner.OPTIMIZER)],
        [MINE, written(replicas=0)],
        [MINE, VariableSharedCentrally(1), written()],
        [replace(MINE, location=()), written()],
        [written()],
    ],
    ids=[
        "distributed",
        "a metric",
        "by an optimizer",
        "once for all",
        "central",
        "no line",
        "not seen",
    ],
)
def test_writes_that_are_right(events):
    assert modes(run(*events)) == []
