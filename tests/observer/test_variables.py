"""What the observer reads of variables."""

import numpy as np
import pytest
from strategy_clinic.observer import variables

ONES = np.ones((2, 3))


@pytest.mark.parametrize(
    "copies, distance",
    [([ONES, ONES], 0), ([ONES, 0.5 * ONES], 0.5), ([ONES, np.zeros(0), 0.5 * ONES], 0.5)],
    ids=["same", "apart", "one without a value yet"],
)
def test_how_far_copies_are_apart(monkeypatch, copies, distance):
    monkeypatch.setattr(variables, "arrays_of", lambda _: copies)
    assert variables.distance_of_copies(None) == pytest.approx(distance)
