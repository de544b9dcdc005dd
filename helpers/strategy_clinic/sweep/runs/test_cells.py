"""The cells as items of pytest: an error that is known is a strict xfail, and what is explained must be as it is explained."""

from typing import Any

import pytest

from ...base.errors import UserError
from ..expected import Expected, expected
from ..items import Cell
from ..pytest_plugin import OPTION
from ..record import RecordedCell, records
from ..tables.quick import QUICK
from .catalogue import chosen_cells
from .cells import start
from .measured import References, result_of
from .program import first_difference, program

KERAS_VERSION = 3
REFERENCES: References = {}


class KnownError(AssertionError):
    """A cell that differs as is known."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    recorded = records()[-1].cells
    cells = [(cell, expected(cell.name, recorded)) for cell in chosen_cells([KERAS_VERSION])]
    metafunc.parametrize("cell, known", [parameter(*each) for each in cells])


def parameter(cell: Cell, known: Expected) -> Any:
    quick = [pytest.mark.quick] if cell.name in QUICK else []
    return pytest.param(cell, known, id=cell.name, marks=[*quick, *xfail(known)])


def xfail(known: Expected) -> list[pytest.MarkDecorator]:
    if not known.is_known_error:
        return []
    strict, reason = known.is_always_seen, known.reason
    return [pytest.mark.xfail(raises=KnownError, strict=strict, reason=reason)]


@pytest.fixture(scope="session")
def replicas() -> None:
    """Starts TensorFlow with several devices, once for a process; ends the run with a sentence where it cannot."""
    try:
        start(KERAS_VERSION)
    except UserError as error:
        pytest.exit(str(error), returncode=2)


def test_cell(cell: Cell, known: Expected, replicas: None, pytestconfig: pytest.Config) -> None:
    rounding = known.was.rounding if known.was else None
    now = RecordedCell(cell.name, "", **vars(result_of(cell, REFERENCES, rounding)))
    is_met, is_gone = known.is_met_by(now), not now.to_settle
    if is_gone if known.is_known_error else is_met:
        return  # of a known error that is gone, the strict xfail tells
    lines = [known.news(now), "", program(cell)]
    if pytestconfig.getoption(OPTION, False) and now.differs:
        lines += ["", first_difference(cell)]
    if is_met:
        raise KnownError("\n".join(lines))
    pytest.fail("\n".join(lines), pytrace=False)
