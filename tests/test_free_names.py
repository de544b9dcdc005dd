"""Names that a statement binds and reads; they are the same on every Python."""

import pytest
from strategy_clinic.base.free_names import names_of

STATEMENTS = {
    "x = [each for each in rows]": ({"x"}, {"rows"}),
    "x = {key: [cell for cell in row] for key, row in rows.items()}": ({"x"}, {"rows"}),
    "x = {each for each in rows if (last := each)}": ({"x", "last"}, {"rows", "last"}),
    "f({'a': [cell[1:] != wanted for cell in rows]})": (set(), {"f", "rows", "wanted"}),
    "def f(rows):\n    return [each for each in rows if limit]": ({"f"}, {"limit"}),
    "import numpy as np": ({"np"}, set()),
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_variables_of_comprehensions_are_no_names_of_the_module(statement):
    assert names_of(statement) == STATEMENTS[statement]
