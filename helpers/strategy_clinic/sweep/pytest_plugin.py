"""A plugin of pytest for the cells of the sweep: the tier `quick`, and the option that shows where a cell differs first.

`pytest -p strategy_clinic.sweep.pytest_plugin --pyargs strategy_clinic.sweep.runs.test_cells` runs the cells.
"""

from __future__ import annotations

import pytest

OPTION = "--first-difference"
QUICK = "quick: cells that together show each known error, and some that show none; about a minute"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("cells of Keras").addoption(
        OPTION,
        action="store_true",
        help="with each cell that differs, print the first tensor of its steps that differs; needs strategy_clinic",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", QUICK)
