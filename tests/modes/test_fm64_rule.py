"""The examiner's rule for fm64: a Python generator under a strategy."""

import pytest
from recorded import LINE, found, modes, run, strategy
from strategy_clinic.observer.events import DataRanOut


def examined(generator=True, location=LINE, steps=0, keras=3, replicas=2):
    made = [strategy(replicas)] if replicas else []
    return run(*made, DataRanOut(location, steps, generator), keras=keras)


@pytest.mark.parametrize("keras", [3, None], ids=["Keras 3", "the installed one"])
def test_a_generator_that_has_ended(keras):
    (finding,) = found(examined(keras=keras))
    assert (finding.mode, finding.line) == ("fm64", LINE[0].line)
    assert "cannot give back" in str(finding.message)


@pytest.mark.parametrize(
    "changes",
    [{"generator": False}, {"keras": 2}, {"replicas": 0}, {"steps": 4}, {"location": ()}],
    ids=["other data", "Keras 2", "no strategy", "steps were asked for", "nobody can place it"],
)
def test_where_nothing_is_lost(changes):
    assert "fm64" not in dict(modes(examined(**changes)))
