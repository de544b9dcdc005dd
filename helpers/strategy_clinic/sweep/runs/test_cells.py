"""The cells as items of pytest: an error that is known is a strict xfail, and what is explained must be as it is explained."""

import pytest

from ..expected import Expected, expected
from ..items import Cell
from ..pytest_plugin import OPTION
from ..record import RecordedCell, records
from ..tables.quick import QUICK
from .catalogue import chosen_cells
from .cells import References, result_of, start
from .program import first_difference, program

KERAS_VERSION = 3
REFERENCES: References = {}


class KnownError(AssertionError):
    """A cell that differs as is known."""


def parameters() -> list[object]:
    recorded = records()[-1].cells
    return [parameter(cell, expected(cell.name, recorded)) for cell in chosen_cells([KERAS_VERSION])]


def parameter(cell: Cell, known: Expected) -> object:
    marks = [pytest.mark.quick] if cell.name in QUICK else []
    if known.is_known_error:
        strict, reason = known.is_always_seen, known.reason
        marks.append(pytest.mark.xfail(raises=KnownError, strict=strict, reason=reason))
    return pytest.param(cell, known, id=cell.name, marks=marks)


@pytest.fixture(scope="session")
def replicas() -> None:
    """Starts TensorFlow with several devices, once for a process."""
    start(KERAS_VERSION)


@pytest.mark.parametrize("cell, known", parameters())
def test_cell(
    cell: Cell, known: Expected, replicas: None, pytestconfig: pytest.Config
) -> None:
    now = RecordedCell(cell.name, "", **vars(result_of(cell, REFERENCES)))
    if known.is_met_by(now) and not known.is_known_error:
        return
    if known.is_known_error and not now.to_settle:
        return  # which a strict xfail reports
    lines = [known.news(now), "", program(cell)]
    if pytestconfig.getoption(OPTION, False) and now.differs:
        lines += ["", first_difference(cell)]
    if known.is_met_by(now):
        raise KnownError("\n".join(lines))
    pytest.fail("\n".join(lines), pytrace=False)
